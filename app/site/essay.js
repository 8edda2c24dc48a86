// The essay, and the other pages of figures: a prediction that is locked in runs its figure.
predictions(document, (key) => runs(document.getElementById(document.querySelector(`[data-key="${key}"]`).dataset.of)), true);
