/* The labelling desk: one key records and moves on. Without this script the same forms post as pages. */
(() => {
	"use strict";
	const $ = (selector, within = document) => within.querySelector(selector);
	const say = (text) => { const live = $("#gv-live"); if (live) live.textContent = text; };
	const singleKeys = () => { try { return JSON.parse(localStorage.getItem("govKeys")) !== false; } catch { return true; } };
	const WAITS = [5, 15, 60];
	let busy = false, waits = 0, later = 0;

	// The judgment stays in the page with its id, so that whichever try arrives counts once.
	const notSaved = (form, button, words, link) => {
		$("[data-not-saved]")?.remove();
		delete form.dataset.sent;
		setTimeout(() => button?.removeAttribute("aria-disabled"));
		if (!link && waits < WAITS.length) {
			words += ` Trying again in ${WAITS[waits]} s.`;
			later = setTimeout(() => post(form, button), WAITS[waits++] * 1000);
		}
		const box = document.createElement("div");
		box.className = "gv-notice gv-bad";
		box.dataset.notSaved = "";
		box.setAttribute("role", "alert");
		box.append(Object.assign(document.createElement("span"), { className: "gv-sign", textContent: "✕" }));
		const inner = document.createElement("div");
		inner.append(`Not saved: ${words} `);
		if (link) inner.append(Object.assign(document.createElement("a"), { href: link, target: "_blank", textContent: "Sign in in a new window" }), " ");
		const again = Object.assign(document.createElement("button"), { type: "button", className: "gv-button small", textContent: "Retry now" });
		again.addEventListener("click", () => post(form, button));
		inner.append(again);
		box.append(inner);
		form.before(box);
		again.focus();
	};

	const post = async (form, button) => {
		if (busy) return;
		busy = true;
		clearTimeout(later);
		const body = new FormData(form);
		if (button?.name) body.set(button.name, button.value);
		say("Saving");
		try {
			const answer = await fetch(form.action, { method: "POST", body, credentials: "same-origin" });
			if (/\/login\//.test(answer.url)) return notSaved(form, button, "you are signed out.", answer.url);
			if (answer.status >= 500) return notSaved(form, button, `the server answered ${answer.status}.`);
			const page = new DOMParser().parseFromString(await answer.text(), "text/html");
			const fresh = $("#desk", page);
			if (!fresh) { location.assign(answer.url); return; }
			waits = 0;
			$("#desk").replaceWith(document.adoptNode(fresh));
			const side = $(".desk-side", page);
			if (!side) $(".desk-side")?.remove();
			else if ($(".desk-side")) $(".desk-side").replaceWith(document.adoptNode(side));
			else $(".gv-desk-head").append(document.adoptNode(side));
			const saved = $("[data-saved]");
			if (saved && answer.ok) saved.textContent += ` · saved ${new Date().toISOString().slice(11, 19)} UTC`;
			say(answer.ok ? "Saved" : $("[role=alert]")?.textContent || "Not saved");
			($("[data-message]") || $(".desk-passage") || $("#desk a, #desk button"))?.focus({ preventScroll: false });
		} catch {
			notSaved(form, button, "nothing was heard from the server.");
		} finally {
			busy = false;
		}
	};

	addEventListener("online", () => $("[data-not-saved] button")?.click());
	document.addEventListener("submit", (event) => {
		const form = event.target;
		if (form.id !== "judge" && form.id !== "undo") return;
		event.preventDefault();
		post(form, event.submitter);
	});
	document.addEventListener("keydown", (event) => {
		if (event.ctrlKey || event.metaKey || event.altKey || !singleKeys()) return;
		if (event.target.closest("input, textarea, select")) {
			if (event.key === "Escape") event.target.blur();
			return;
		}
		const key = event.key.toLowerCase();
		const grades = $(".desk-grade");
		let target;
		if (grades?.open && /^[0-4]$/.test(key)) target = $(`[data-grade="${key}"]`);
		else if (key === "n") { const box = $("#note-box"); if (box) { box.open = true; $("textarea", box).focus(); event.preventDefault(); } return; }
		else target = $(`[data-desk-key="${CSS.escape(key)}"]`);
		if (!target || target.disabled) return;
		event.preventDefault();
		if (target.tagName === "SUMMARY") { grades.open = !grades.open; $("[data-grade]").focus(); } else target.click();
	});
})();
