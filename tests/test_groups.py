"""Groups of widgets in a sidebar."""

import panel_material_ui as pmui

from steinlab.ui.groups import Fold, group


def test_a_folded_group_says_what_is_set_in_it_and_an_open_one_does_not():
    fold = Fold("Optimiser", pmui.Button(label="inside"), state="Adam, step 0.05")
    assert fold.folded and "<b>Optimiser</b>" in fold.head and "Adam, step 0.05" in fold.head
    fold.fold.active = [0]  # a click
    assert not fold.folded and "Adam" not in fold.head
    fold.say("SGD, step 1")
    assert "SGD" not in fold.head
    fold.fold.active = []
    assert "SGD, step 1" in fold.head and "Adam" not in fold.head
    fold.say("Adam & <b>")
    assert "Adam &amp; &lt;b&gt;" in fold.head


def test_a_new_state_keeps_the_widgets():
    inside = pmui.Button(label="inside")
    fold = Fold("Start", inside, folded=False)
    assert not fold.folded
    body = fold.fold[0]
    fold.visible = False
    assert not fold.fold.visible
    fold.fold.active = []
    fold.say("spread 1")
    assert fold.fold[0] is body and body[0] is inside


def test_a_group_that_is_always_open_has_its_title_over_its_widgets():
    inside = pmui.Button(label="inside")
    head, widget = group("Methods", inside)
    assert head.object == "Methods" and widget is inside
