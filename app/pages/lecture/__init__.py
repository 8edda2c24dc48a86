"""Page "Lecture": stops of several pages in one link, prepared beforehand, with notes for the speaker."""
