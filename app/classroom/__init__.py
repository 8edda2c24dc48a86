"""A class: one lecturer's stage on every phone, and what the class answers."""
