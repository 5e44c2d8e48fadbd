"""`make run`: every process of the platform in the foreground, from one terminal."""
