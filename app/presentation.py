"""A lecture that goes over several pages, stop by stop, and the keys that move it."""

from __future__ import annotations

import weakref

from steinlab.lesson.playlist import Playlist, place_of


class Presentation:
    """Show the stops of a lecture in turn, and tell the speaker's window.

    Attributes:
        playlist: the lecture that runs; None for a lecture on one page.
    """

    def __init__(self, shell):
        self.shell = weakref.proxy(shell)  # which holds this
        self.playlist: Playlist | None = None

    def play(self, playlist: Playlist, push: bool = True):
        """Show the stop of a lecture at which it is. push: add an entry to the browser's history."""
        before, place = self.shell.page, place_of(playlist.play[playlist.at - 1], self.shell.known)
        self.playlist = playlist
        if place.page in self.shell.pages:
            if hasattr(self.shell.pages[place.page], "open"):
                self.shell.pages[place.page].open(place.query)
            self.shell.turn_to(place.page, push=False)
        else:
            self.shell.turn_to(place.page, place.query, push=False)
        if before is not self.shell.page and getattr(before, "lecture", None):
            before.lecture.turn(False)
        self.talk()
        self.shell.address = self.shell.full("")
        self.shell.browser.show_link(self.shell.address, push=push)

    def talk(self):
        """Turn the lecture on for the page on screen, and tell the speaker's window."""
        page, lecture = self.shell.page, getattr(self.shell.page, "lecture", None)
        if tour := getattr(page, "tour", None):
            tour.place = self.playlist.at, len(self.playlist.play)
        if lecture:
            lecture.turn(True)
        else:
            self.shell.lecture(True)
        if tour:
            tour.ask()
        self.shell.browser.cast({"at": self.playlist.at, "play": self.playlist.play})

    def forth(self, by: int):
        """Go on (1) or back (-1): to an answer, or to another stop of the lecture or of the page's tour."""
        tour, lecture = getattr(self.shell.page, "tour", None), getattr(self.shell.page, "lecture", None)
        if tour and tour.asked and by > 0:
            tour.answer()
        elif self.playlist and self.shell.browser.lecture:
            if (moved := self.playlist.moved(by)) != self.playlist:
                self.play(moved)
        elif lecture:
            lecture.move(by)

    def on_key(self, key: str):
        """Do what a key of the lecture says: "p", "left" or "right". A part of another page gives none."""
        if self.shell.short:
            return
        if key != "p":
            self.forth(1 if key == "right" else -1)
        elif lecture := getattr(self.shell.page, "lecture", None):
            lecture.toggle()
        elif self.shell.browser.lecture:
            self.shell.lecture(False)
            self.end()
        elif self.shell.key == "lecture":
            self.play(self.shell.page.playlist)
        else:
            self.shell.go("?page=lecture")

    def end(self):
        """Forget the stops: the speaker has left the lecture."""
        self.playlist = None
        for page in self.shell.pages.values():
            if tour := getattr(page, "tour", None):
                tour.place = None

    def add(self):
        """Put what is on screen at the end of the lecture that page "Lecture" prepares."""
        tour, name = getattr(self.shell.page, "tour", None), f"{self.shell.key}?{self.shell.page.link()}"
        if tour and tour.at >= 0 and not tour.stale:
            name = f"{self.shell.key}.{tour.at + 1}"
        elif self.shell.key == "lessons":
            name = f"lessons.{int(self.shell.page.lesson.key)}.{self.shell.page.shown + 1}"
        self.shell.turn_to("lecture")
        self.shell.page.add(name)
