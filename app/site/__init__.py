"""The site: the stage of page Particles as static files, computed in the browser by programs of `stein_core.web`."""
