"""The app. From Python: `steinlab.watch`, for a loop of one's own."""


def __getattr__(name: str):
    if name == "watch":
        from steinlab.watching.loop import watch

        return watch
    raise AttributeError(f"module 'steinlab' has no attribute {name!r}")
