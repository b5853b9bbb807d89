"""Sites whose hosts are other machines: an agent runs on each, whichever engine started it."""
