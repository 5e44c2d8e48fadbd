/* Behaviour of the staff pages. Loaded at once: the theme is set before the first paint. */
(() => {
	"use strict";
	const root = document.documentElement;
	const $ = (selector, within = document) => within.querySelector(selector);
	const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
	const read = (key) => { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } };
	const write = (key, value) => { try { localStorage.setItem(key, JSON.stringify(value)); } catch { } };
	const say = (text) => { const live = $("#gv-live"); if (live) live.textContent = text; };

	const system = matchMedia("(prefers-color-scheme: dark)");
	const theme = () => read("adminTheme") || "auto";
	const paint = () => {
		const dark = theme() === "dark" || (theme() === "auto" && system.matches);
		root.classList.toggle("dark", dark);
		$$("[data-theme]").forEach((b) => b.setAttribute("aria-pressed", b.dataset.theme === theme()));
	};
	root.classList.remove("no-js");
	paint();
	system.addEventListener("change", paint);

	const expand = (button, open) => {
		button.setAttribute("aria-expanded", open);
		const panel = document.getElementById(button.getAttribute("aria-controls"));
		if (panel) panel.hidden = !open;
		if (open && button.dataset.menu !== undefined) $("a,button,input", panel)?.focus();
	};
	const closeMenus = (except) => $$("[data-menu][aria-expanded=true]").forEach((b) => {
		if (b !== except && !document.getElementById(b.getAttribute("aria-controls"))?.contains(except)) expand(b, false);
	});

	const copy = async (button) => {
		const text = button.dataset.copy || document.getElementById(button.dataset.copyFrom)?.textContent || "";
		try { await navigator.clipboard.writeText(text); say("Copied"); button.title = "Copied"; }
		catch { say("Copying is not allowed here"); }
	};
	const download = (button) => {
		const link = document.createElement("a");
		link.href = URL.createObjectURL(new Blob([document.getElementById(button.dataset.downloadFrom).textContent]));
		link.download = button.dataset.download;
		link.click();
		URL.revokeObjectURL(link.href);
	};

	// Dialogs
	let opener = null;
	const dialog = () => {
		let box = $("#gv-dialog");
		if (!box) {
			box = document.createElement("dialog");
			box.id = "gv-dialog";
			box.className = "gv-dialog gv";
			box.addEventListener("close", () => { box.replaceChildren(); opener?.focus(); opener = null; });
			document.body.append(box);
		}
		return box;
	};
	const headers = { "X-Gov-Dialog": "1" };
	const note = (box, text, href) => {
		const place = $("[data-note]", box) || box.firstElementChild || box;
		const p = document.createElement("p");
		p.className = "gv-notice gv-bad";
		p.setAttribute("role", "alert");
		p.textContent = text + " ";
		if (href) {
			const link = Object.assign(document.createElement("a"), { href, target: "_blank", textContent: "Sign in in a new window" });
			p.append(link);
		}
		place.replaceChildren(p);
	};
	const fill = (box, html) => {
		box.innerHTML = html;
		const title = $("h2", box);
		if (title) box.setAttribute("aria-label", title.textContent);
		prepare(box);
		($("[data-note] [role=alert]", box) || $("[data-focus]", box) || $("[autofocus],textarea,input:not([type=hidden]),button", box))?.focus();
	};
	const signedOut = (answer) => answer.redirected && /\/login\//.test(answer.url);
	const openDialog = async (link) => {
		const box = dialog();
		opener = link;
		box.innerHTML = '<div class="gv-dialog-body gv-load" role="status">Computing…</div>';
		box.showModal();
		try {
			const answer = await fetch(link.dataset.dialog || link.href, { headers, credentials: "same-origin" });
			if (signedOut(answer)) { box.close(); location.reload(); return; }
			fill(box, await answer.text());
		} catch {
			box.innerHTML = '<div class="gv-dialog-body">The preview did not load. <button class="gv-button" data-close>Close</button></div>';
		}
	};
	const postDialog = async (form, submitter) => {
		const box = form.closest("dialog");
		const body = new FormData(form, submitter);
		submitter?.setAttribute("disabled", "");
		try {
			const answer = await fetch(form.action, { method: "POST", body, headers, credentials: "same-origin" });
			const target = answer.headers.get("X-Gov-Fill");
			if (answer.headers.get("X-Gov-Location")) { location.assign(answer.headers.get("X-Gov-Location")); return; }
			if (signedOut(answer)) note(box, "You are signed out. What you typed is kept here.", answer.url);
			else if (target && answer.ok) {
				const place = $(target);
				box.close();
				place.innerHTML = await answer.text();
				place.setAttribute("tabindex", "-1");
				place.focus();
				return;
			} else if ((answer.headers.get("Content-Type") || "").includes("text/html") && answer.status < 500) {
				fill(box, await answer.text());
				return;
			} else note(box, `Nothing was changed: the server answered ${answer.status}.`);
		} catch { note(box, "Nothing was heard from the server. Check the page before you try again."); }
		submitter?.removeAttribute("disabled");
	};

	// What a page or fragment brings along
	const words = (within) => $$("input[data-word]", within).forEach((field) => {
		const button = $("[data-needs-word]", field.form);
		const check = () => { button.disabled = field.value.trim() !== field.dataset.word; };
		field.addEventListener("input", check);
		check();
	});
	// As formats.duration
	const span = (s) => {
		const [d, h, m, rest] = [86400, 3600, 60, 1].map((u) => Math.floor(s / u));
		const and = (n, u) => n ? ` ${n} ${u}` : "";
		return d ? `${d} d${and(h % 24, "h")}` : h ? `${h} h${and(m % 60, "min")}` : m ? `${m} min` : `${rest} s`;
	};
	const tick = () => $$("[data-deadline]").forEach((place) => {
		const left = (Date.parse(place.dataset.deadline) - Date.now()) / 1000;
		if (left < 3600) {
			place.textContent = left > 0 ? `in ${span(left)}` : `overdue ${span(-left)}`;
			place.classList.toggle("gv-bad", left <= 0);
		}
	});
	const load = async (box) => {
		const started = Date.now();
		const show = setInterval(() => {
			const seconds = Math.round((Date.now() - started) / 1000);
			box.firstElementChild.textContent = `Computing… ${seconds} s`;
			const retry = $("[data-retry]", box);
			if (retry && seconds >= 10) retry.hidden = false;
		}, 1000);
		try {
			const answer = await fetch(box.dataset.load, { headers, credentials: "same-origin" });
			if (!answer.ok) throw new Error();
			box.innerHTML = await answer.text();
			box.classList.remove("gv-load");
			prepare(box);
		} catch { box.firstElementChild.textContent = "This part did not load."; const r = $("[data-retry]", box); if (r) r.hidden = false; }
		clearInterval(show);
	};
	let spoken = -1;
	const poll = (box) => setTimeout(async () => {
		try {
			const answer = await fetch(box.dataset.poll, { headers, credentials: "same-origin" });
			if (!answer.ok) throw new Error();
			const holder = document.createElement("div");
			holder.innerHTML = await answer.text();
			const next = holder.firstElementChild;
			const bar = $("progress", next);
			box.replaceWith(next);
			if ("stale" in next.dataset) $$(".gv-actions").forEach((row) => { row.inert = true; });
			const quarter = bar?.max ? Math.floor(bar.value / bar.max * 4) : -1;
			if (quarter > spoken || !next.dataset.poll) { spoken = quarter; say(next.textContent.replace(/\s+/g, " ").trim()); }
			if (next.dataset.poll) poll(next);
		} catch { if (box.isConnected) poll(box); }
	}, (Number(box.dataset.every) || 2) * 1000);
	const prepare = (within) => {
		words(within);
		$$("[data-load]", within).forEach(load);
		$$("[data-poll]", within).forEach(poll);
	};

	const keysOn = () => read("govKeys") !== false;
	const rows = () => $$("#result_list tr.data-row, .gv-records tr.gv-row");
	const move = (by) => {
		const all = rows();
		if (!all.length) return;
		const at = all.indexOf(document.activeElement.closest?.("tr"));
		const row = all[Math.max(0, Math.min(all.length - 1, at + by))];
		row.tabIndex = -1;
		row.focus();
		row.scrollIntoView({ block: "nearest" });
	};
	const showKeys = () => { const box = $("#gv-keys"); if (box && !box.open) { opener = document.activeElement; box.showModal(); } };
	let going = 0;
	const key = (event) => {
		if (event.key === "Escape") { const open = $("[data-menu][aria-expanded=true]"); closeMenus(); open?.focus(); return; }
		if ((event.ctrlKey || event.metaKey) && event.key === "e") { event.preventDefault(); write("adminTheme", root.classList.contains("dark") ? "light" : "dark"); paint(); return; }
		if (event.ctrlKey || event.metaKey || event.altKey || !keysOn() || $("dialog[open]")) return;
		const here = document.activeElement;
		if (here.matches("input:not([type=checkbox],[type=radio]),textarea,select,[contenteditable]")) return;
		const row = here.matches("tr") ? here : null;
		const press = (selector) => { const found = $(selector); if (found) { event.preventDefault(); found.click(); } };
		if (going > Date.now()) { going = 0; press(`[data-go="${CSS.escape(event.key)}"]`); return; }
		const acts = {
			"?": showKeys, g: () => { going = Date.now() + 1500; }, j: () => move(1), k: () => move(-1),
			"/": () => { const field = $("#searchbar,input[type=search]"); if (field) { event.preventDefault(); field.focus(); } },
			Enter: () => { const link = row && $("th a, a, .gv-expand", row); if (link) { event.preventDefault(); link.click(); } },
			x: () => row && $("input[type=checkbox]", row)?.click(),
			"[": () => press("a[rel=prev]"), "]": () => press("a[rel=next]"), c: () => press("[data-copy-id]"),
		};
		if (Object.hasOwn(acts, event.key)) acts[event.key]();
		else if (/^[0-9a-z]$/.test(event.key)) press(`[data-key="${event.key}"]:not(:disabled)`);
	};

	document.addEventListener("click", (event) => {
		const at = event.target.closest?.("[data-copy],[data-copy-from],[data-download],[data-theme],[aria-controls],[data-dialog],[data-close],[data-keys],[data-keys-switch],[data-retry],[data-stored]");
		closeMenus(event.target.closest?.("[data-menu]") || event.target);
		if (!at) return;
		const is = (name) => at.dataset[name] !== undefined;
		if (is("copy") || is("copyFrom")) copy(at);
		else if (is("download")) download(at);
		else if (is("theme")) { write("adminTheme", at.dataset.theme); paint(); }
		else if (is("keysSwitch")) { write("govKeys", !keysOn()); at.setAttribute("aria-pressed", keysOn()); }
		else if (is("keys")) showKeys();
		else if (is("close")) { event.preventDefault(); at.closest("dialog").close(); }
		else if (is("retry")) load(at.closest("[data-load]"));
		else if (is("stored")) $$("[data-unstored]").forEach((place) => delete place.dataset.unstored);
		else if (is("dialog")) { if (!event.ctrlKey && !event.metaKey) { event.preventDefault(); openDialog(at); } }
		else if (at.matches("button")) expand(at, at.getAttribute("aria-expanded") !== "true");
	});
	document.addEventListener("submit", (event) => {
		const form = event.target;
		if (form.closest("#gv-dialog")) { event.preventDefault(); postDialog(form, event.submitter); }
		else if (form.method === "post" && event.submitter) {
			if (form.dataset.sent) { event.preventDefault(); return; }
			form.dataset.sent = "1";
			setTimeout(() => { event.submitter.setAttribute("aria-disabled", "true"); });
		}
	});
	document.addEventListener("change", (event) => {
		if (event.target.id === "action-toggle") $$("input.action-select").forEach((box) => { box.checked = event.target.checked; });
	});
	document.addEventListener("keydown", key);
	addEventListener("pageshow", () => $$("form[data-sent]").forEach((form) => {
		delete form.dataset.sent;
		$$("[aria-disabled=true]", form).forEach((button) => button.removeAttribute("aria-disabled"));
	}));
	addEventListener("beforeunload", (event) => { if ($("[data-unstored]")) event.preventDefault(); });
	document.addEventListener("DOMContentLoaded", () => {
		paint();
		prepare(document);
		tick();
		setInterval(tick, 1000);
		$$("[data-keys-switch]").forEach((b) => b.setAttribute("aria-pressed", keysOn()));
		$("#gv-keys")?.addEventListener("close", () => opener?.focus());
		$("[data-message]")?.focus();
		if (matchMedia("(max-width: 640px)").matches) {
			$$(".gv-trend details").forEach((d) => { d.open = true; });
			$$(".gv-filters").forEach((d) => { d.open = false; });
		}
	});
})();
