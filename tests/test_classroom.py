"""A class: codes, questions, answers that outlive the process, and what phones may send."""

import asyncio
import gzip
import json
import math
import os
import random
import re
import struct
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from checks import until
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.testing import bind_unused_port
from tornado.web import Application
from tornado.websocket import websocket_connect

from stein_core import TARGETS
from stein_core.cli.serve import LETTERS as PROCESSES, configured
from steinlab.classroom import rooms as rooms_module, runs, socket
from steinlab.classroom.questions import Answer, Question, gathered
from steinlab.classroom.room import MOST_ANSWERS, RATE, Room
from steinlab.classroom.rooms import LENGTH, LETTERS, WRONG, Rooms, is_code, readable
from steinlab.server.channel import CHANNELS, Channel, FramesHandler, framed
from steinlab.server.folders import ASSETS
from steinlab.server.memory import dismantle
from steinlab.stage.live_page import Look
from steinlab.stage.seen import SEE
from steinlab.stage.wire import Panel, pack
from steinlab.ui import link

WHO = "a" * 32
NUMBER = {"ask": "How much is left?", "low": 0.0, "high": 1.0}


class Phone:
    """A follower's connection that notes what it is sent."""

    def __init__(self):
        self.texts, self.frames = [], []

    def tell(self, text):
        self.texts.append(json.loads(text))

    def show(self, frame, row):
        self.frames.append(frame)


@pytest.fixture
def kept(tmp_path):
    return Rooms(tmp_path)


@pytest.fixture
def room():
    return Room("AAAA2222", lambda fact: None)


def frame(run=0):
    return pack([Panel(3, [1.0], np.ones((2, 9)), False)], run)


# ---- codes


def test_a_code_cannot_be_guessed_and_opens_only_its_own_class(kept):
    made = [kept.begin() for _ in range(40)]
    codes = [room.code for room, _ in made]
    assert len({*codes}) == 40 and all(is_code(code) for code in codes) and len(LETTERS) ** LENGTH > 5e11
    for (room, key), (other, _) in zip(made, made[1:]):
        assert kept.find(readable(room.code).lower(), "1.2.3.4") is room
        assert kept.resume(room.code, key) is room and kept.resume(other.code, key) is None
    for text in ("", "AAAA", "../../etc", "AAAA2222\n", "AAAA222\0", "O" * LENGTH, "💥" * LENGTH):
        assert not is_code(text) and kept.find(text, "1.1.1.1") is None


def test_after_many_wrong_codes_an_address_gets_no_answer_and_others_do(kept):
    room, _ = kept.begin()
    for _ in range(WRONG):
        assert kept.find("AAAA2222", "6.6.6.6") is None
    with pytest.raises(PermissionError):
        kept.find(room.code, "6.6.6.6")  # even a right one: else it could be told from wrong ones
    assert kept.find(room.code, "1.2.3.4") is room


def test_wrong_codes_from_many_addresses_are_too_many_in_all(kept, monkeypatch):
    kept.in_all = rooms_module.Allowance(30, 0.0)
    with pytest.raises(PermissionError):
        for k in range(31):
            kept.find("AAAA2222", f"6.6.6.{k}")


def test_a_class_is_found_again_by_the_next_process_with_all_answers(kept, tmp_path, monkeypatch):
    room, key = kept.begin()
    room.ask(NUMBER)
    for k in range(5):
        assert room.answer(f"{k:032}", 1, k / 10, f"n{k}") == ""
    room.hide(f"{3:032}", True)
    room.result(f"{2:032}", 1, 0.25, "")
    room.ask(NUMBER | {"ask": "And now?"})
    room.answer(WHO, 2, 0.5, "")
    with (tmp_path / f"{room.code}.jsonl").open("a") as file:
        file.write('{"answer": [2, "bbbb')  # the process died within a line
    again, other = Rooms(tmp_path), os.getpid()
    monkeypatch.setattr(rooms_module.os, "getpid", lambda: -1)
    assert again.find(room.code, "1.2.3.4") is None  # another process lives and has the class
    monkeypatch.setattr(rooms_module, "is_alive", lambda process: process != other)
    found = again.resume(room.code, key)
    assert found is again.find(room.code, "1.2.3.4") is not room
    assert found.csv() == room.csv() and found.csv().count("n3") == 1
    assert found.question == room.question and found.mine(WHO)["value"] == 0.5


def test_of_a_class_that_has_ended_nothing_stays(kept, tmp_path):
    room, key = kept.begin()
    phone = Phone()
    room.join(phone, WHO)
    kept.end(room)
    assert not [*tmp_path.glob("*.jsonl")] and phone.texts[-1] == {"end": True} and kept.resume(room.code, key) is None
    old, _ = kept.begin()
    old.seen -= rooms_module.LASTS + 1
    other, _ = Rooms(tmp_path).begin()  # of a process that has died
    os.utime(tmp_path / f"{other.code}.jsonl", (0, 0))
    kept.sweep()
    assert not [*tmp_path.glob("*.jsonl")] and not kept.open


# ---- what followers see


def test_a_late_follower_sees_what_the_others_see(room):
    first, late = Phone(), Phone()
    room.join(first, WHO)
    room.publish(scene={"cards": []}, starting=1, alarm="")
    room.publish(alarm="it diverged")
    room.ask(NUMBER)
    room.answer(WHO, 1, 0.25, "Ada")
    room.join(late, "b" * 32)
    told = {}
    for text in first.texts:
        told |= text.get("state", {})
    assert late.texts[0]["state"] == told and told["alarm"] == "it diverged"
    assert late.texts[0]["question"] == first.texts[-1]["question"] and late.texts[0]["mine"] is None
    again = Phone()
    room.join(again, WHO)
    assert again.texts[0]["mine"]["value"] == 0.25


def test_all_get_the_same_bytes_and_a_frame_waits_for_the_news_of_its_run(room):
    async def play():
        phones = [Phone() for _ in range(3)]
        for k, phone in enumerate(phones):
            room.join(phone, f"{k:032}")
        room.publish(starting=1)
        room.take(frame(1), run=1)
        assert all(phone.frames[0] is phones[0].frames[0] for phone in phones)
        room.take(frame(2), run=2)  # it has overtaken the news that another run begins
        assert len(phones[0].frames) == 1
        room.publish(starting=2)
        await asyncio.sleep(3 / RATE)
        assert len(phones[0].frames) == 2 and np.frombuffer(phones[0].frames[1][-4 * len(frame(2)) :], "<f4")[2] == 2

    asyncio.run(play())


def test_no_more_frames_a_second_than_the_rate_and_the_newest_is_shown(room):
    async def play():
        phone = Phone()
        room.join(phone, WHO)
        for k in range(20):
            sent = frame()
            sent[0] = k
            room.take(sent)
        await asyncio.sleep(3 / RATE)
        assert len(phone.frames) == 2 and np.frombuffer(phone.frames[1][-4 * len(sent) :], "<f4")[0] == 19

    asyncio.run(play())


# ---- questions


def test_answers_are_counted_where_they_lie():
    question = Question(1, "?", low=0.0, high=1.0)
    told = gathered(question, [Answer(str(k), "", v) for k, v in enumerate([0.0, 0.049, 0.05, 0.5, 1.0])])
    counts = [n for _, _, n in told["bins"]]
    assert counts[0] == 2 and counts[1] == 1 and counts[10] == 1 and counts[-1] == 1 and told["count"] == 5
    log = Question(1, "?", low=0.01, high=100.0, log=True)
    told = gathered(log, [Answer(str(k), "", 10.0 ** (k - 2 + 0.01)) for k in range(4)])
    assert [n for _, _, n in told["bins"]] == [1, 0, 0, 0, 0] * 4  # each decade has five bins of equal ratio
    assert np.allclose([b / a for a, b, _ in told["bins"]], 10 ** (4 / 20))
    choice = Question(1, "?", choices=("a", "b", "c"))
    hidden = Answer("3", "", 2)
    hidden.hidden = True
    assert gathered(choice, [Answer("1", "", 2), Answer("2", "", 2), hidden])["counts"] == [0, 0, 2]


@pytest.mark.parametrize(
    "facts, said",
    [
        ({"ask": " "}, "ask = ' '; allowed: 1 to 200 characters."),
        ({"ask": "?", "choices": ("one",)}, "choices = 1 texts; allowed: 2 to 8."),
        ({"ask": "?", "low": 1.0, "high": 1.0}, "low = 1, high = 1; allowed: numbers, low below high."),
        ({"ask": "?", "low": 0.0, "log": True}, "low = 0; allowed on a logarithmic axis: numbers above 0."),
    ],
)
def test_what_is_no_question_is_refused(room, facts, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        room.ask(facts)
    assert room.question is None


def test_an_answer_is_checked_and_a_frozen_question_takes_none(room):
    assert room.answer(WHO, 1, 0.5, "") == "This question is over."
    room.ask(NUMBER)
    assert room.answer(WHO, 1, 2, "") == "answer = 2; allowed: 0 to 1." and not room.answers
    assert room.answer(WHO, 1, 0.5, "x" * 99) == "" and len(room.answers[WHO].name) == 30
    assert room.answer(WHO, 1, 0.75, "") == "" and room.answers[WHO].value == 0.75 and len(room.answers) == 1
    room.freeze(True)
    assert room.answer(WHO, 1, 0.5, "") == "The lecturer takes no more answers." and room.answers[WHO].value == 0.75
    room.freeze(False)
    for k in range(MOST_ANSWERS + 5):
        room.answer(f"{k:032}", 1, 0.5, "")
    assert len(room.answers) == MOST_ANSWERS


def test_a_question_that_is_taken_away_leaves_its_answers_to_the_table(kept):
    room, _ = kept.begin()
    phone = Phone()
    room.join(phone, WHO)
    room.ask(NUMBER)
    room.answer(WHO, 1, 0.5, "Ada")
    room.close()
    room.close()
    assert phone.texts[-1] == {"question": None} and room.answer(WHO, 1, 0.5, "") == "This question is over."
    again = Rooms(kept.folder).find(room.code, "")
    assert again.question is None and again.csv() == room.csv() and "Ada,0.5" in room.csv()


def test_the_class_learns_the_outcome_and_the_answers_when_they_are_revealed(room):
    phone = Phone()
    room.join(phone, WHO)
    room.ask(NUMBER)
    room.answer(WHO, 1, 0.5, "")
    room.reveal(False, 0.3)
    assert phone.texts[-1]["question"]["outcome"] is None and "gathered" not in phone.texts[-1]["question"]
    room.reveal(True, 0.3)
    assert phone.texts[-1]["question"]["outcome"] == 0.3 and phone.texts[-1]["question"]["gathered"]["count"] == 1
    room.hide(WHO, True)
    assert phone.texts[-1]["question"]["gathered"]["count"] == 0


def test_no_name_is_a_formula_of_a_spreadsheet(room):
    room.ask(NUMBER)
    room.answer(WHO, 1, 0.5, "=1+1")
    assert "'=1+1" in room.csv() and ",=1+1" not in room.csv()


# ---- runs of their own


@pytest.mark.long
def test_everybodys_run_keeps_what_the_law_says(room):
    later = []
    own = runs.Runs(room, later.append)
    phone = Phone()
    room.join(phone, f"{0:032}")
    room.ask({"ask": "?"} | runs.facts_of("dim", "target=gaussian&methods=svgd&method.particles=20"))
    for k, dim in enumerate((50, 50, 80)):
        assert room.answer(f"{k:032}", 1, dim, "") == ""
    while own.busy or own.waiting:
        until(lambda: bool(later))
        later.pop(0)()
    left = [one.result for one in room.answers.values()]
    regular = [math.log(20) / d * 20 / 19 for d in (50, 50, 80)]  # a regular simplex; the sample variance is unbiased
    assert left == pytest.approx(regular, rel=1e-3)
    told = [text["mine"]["result"] for text in phone.texts if "answered" in text]
    assert told == [left[0]]  # the own phone, and no other
    law = dict(map(tuple, runs.law_of(room.question)))
    assert {50, 80} & law.keys() or min(abs(d - 50) for d in law) < 4
    assert all(value == pytest.approx(math.log(20) / d * 20 / 19) for d, value in law.items())


@pytest.mark.parametrize("base, knob, offered", [
    ("target=gaussian&methods=svgd", "dim", (1, 100)),
    ("target=cross_beside&methods=smi", "dim", (2, 100)),
    ("target=diffusion&methods=svgd", "dim", ("10", "20", "50", "100")),
    ("target=banana&methods=svgd", "dim", ("2", "4", "6", "10", "20", "50", "100")),  # even ones only
    ("target=banana&methods=svgd", "method.alpha", (0.1, 10.0)),
    ("target=banana&methods=langevin", "method.alpha", "Langevin has no alpha; allowed: particles, kernel, dimension."),
    ("target=ring&methods=map", "method.particles", "MAP has no particles; allowed: kernel, dimension."),
    ("target=gamma&methods=svgd", "dim", "Gamma(3, 2) always has dimension 1; allowed: alpha, particles, kernel."),
])  # fmt: skip
def test_a_class_sets_what_the_method_and_the_target_have(base, knob, offered):
    if isinstance(offered, str):
        with pytest.raises(ValueError, match=re.escape(offered)):
            runs.facts_of(knob, base)
        return
    question = Question(1, "?", **runs.facts_of(knob, base))
    assert (question.choices or (question.low, question.high)) == offered
    values = range(len(question.choices)) if question.choices else (question.low, question.high)
    wanted = [float(text) for text in question.choices] or list(values)
    recipes = [runs.recipe_of(question, value, WHO) for value in values]
    assert [recipe.spec.dim if knob == "dim" else recipe.knobs[knob] for recipe in recipes] == wanted


def test_a_class_sets_no_dimension_that_follows_from_options(monkeypatch):
    entry = TARGETS["gaussian"]
    follows = replace(entry, facts=replace(entry.facts, dim_of=lambda: 5))
    monkeypatch.setitem(TARGETS._entries, "gaussian", follows)
    with pytest.raises(ValueError, match="always has dimension 5; allowed: alpha, particles, kernel."):
        runs.facts_of("dim", "target=gaussian&methods=svgd")


def test_a_run_that_fails_leaves_the_answer_and_the_next_ones_come(room, monkeypatch):
    later = []
    own = runs.Runs(room, later.append)
    monkeypatch.setattr(runs, "results", lambda wanted: 1 / 0)
    room.ask({"ask": "?"} | runs.facts_of("method.alpha", "target=gaussian&methods=svgd"))
    room.answer(WHO, 1, 1.0, "")
    until(lambda: bool(later))
    later.pop(0)()
    assert room.answers[WHO].result is None and not own.busy
    assert runs.law_of(room.question) == [] or room.question.knob


# ---- the wire


def test_a_message_is_framed_as_the_standard_says():
    for size in (0, 125, 126, 256, 65535, 65536):
        head = framed(bytes(size))[:-size] if size else framed(b"")
        want = (
            bytes([0x82, size])
            if size < 126
            else bytes([0x82, 126]) + struct.pack("!H", size)
            if size < 65536
            else bytes([0x82, 127]) + struct.pack("!Q", size)
        )
        assert head == want  # RFC 6455, section 5.7


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A server of the class's handlers alone, and its rooms."""
    rooms = Rooms(tmp_path)
    monkeypatch.setattr(socket, "ROOMS", rooms)
    monkeypatch.setattr(socket.Follower, "check_origin", lambda self, origin: True)
    monkeypatch.setattr(FramesHandler, "check_origin", lambda self, origin: True)
    patterns = [(pattern, handler, {}) for pattern, handler in [*socket.PATTERNS, (r"/frames/(.*)", FramesHandler)]]
    box, ready = {}, threading.Event()

    def run():
        asyncio.set_event_loop(asyncio.new_event_loop())
        listening, port = bind_unused_port()
        HTTPServer(Application(patterns)).add_sockets([listening])
        box.update(loop=IOLoop.current(), port=port)
        ready.set()
        box["loop"].start()

    threading.Thread(target=run, daemon=True).start()
    assert ready.wait(20)

    def on_loop(call):
        done = threading.Event()
        box["loop"].add_callback(lambda: (box.update(value=call()), done.set()))
        assert done.wait(20)
        return box["value"]

    yield SimpleNamespace(rooms=rooms, url=f"ws://127.0.0.1:{box['port']}", on_loop=on_loop)
    box["loop"].add_callback(box["loop"].stop)


async def joined(served, code, who=WHO):
    return await websocket_connect(f"{served.url}/class/{code}/socket?who={who}")


async def news(phone, name):
    """The next message that tells this."""
    while True:
        message = await asyncio.wait_for(phone.read_message(), 20)
        assert message is not None, phone.close_code
        if isinstance(message, str) and name in json.loads(message):
            return json.loads(message)


def test_a_phone_answers_and_nothing_of_one_class_comes_to_another(served):
    one, other = (served.on_loop(served.rooms.begin)[0] for _ in range(2))

    async def play():
        phone, stranger = await joined(served, one.code), await joined(served, other.code, "b" * 32)
        await news(phone, "state")
        await news(stranger, "state")
        served.on_loop(lambda: one.ask(NUMBER))
        await news(phone, "question")
        await phone.write_message(json.dumps({"answer": 0.25, "to": 1, "name": "Ada", "own": False}))
        told = await news(phone, "answered")
        assert told == {"answered": 1, "mine": {"id": 1, "value": 0.25, "result": None, "said": ""}}
        await stranger.write_message(json.dumps({"answer": 0.25, "to": 1, "name": "Eve", "own": True}))
        assert (await news(stranger, "answered"))["problem"] == "This question is over."
        served.on_loop(lambda: other.publish(alarm="other"))
        assert (await news(stranger, "state"))["state"] == {"alarm": "other"}

    asyncio.run(play())
    assert [one_.name for one_ in one.answers.values()] == ["Ada"] and not other.answers


def test_a_phone_loads_what_it_runs_and_says_what_came(served, monkeypatch):
    room = served.on_loop(served.rooms.begin)[0]
    heard = []
    monkeypatch.setitem(runs.SCRIPTS, "0123456789abcdef", gzip.compress(b"let a = 1;"))
    monkeypatch.setattr(room, "on_run", lambda *said: heard.append(said))
    monkeypatch.setattr(room, "on_answer", lambda *said: heard.append(said))
    served.on_loop(lambda: room.ask(NUMBER))
    address = served.url.replace("ws:", "http:") + f"/class/{room.code}/run/"

    async def play():
        got = await AsyncHTTPClient().fetch(f"{address}0123456789abcdef.js")
        assert got.body == b"let a = 1;" and got.headers["Content-Type"].startswith("text/javascript")
        for wrong in ("0123456789abcde0.js", "../run.js", "0123456789abcdef"):
            assert (await AsyncHTTPClient().fetch(address + wrong, raise_error=False)).code == 404
        phone = await joined(served, room.code)
        await news(phone, "state")
        for more in ({"ended": 9}, {"ended": -1}, {"result": "1"}, {"of": None}, {"more": 1}, {}, {"ended": 3}):
            said = {"ended": 1, "result": 0.5, "to": 1, "of": 2.0} | more
            await phone.write_message(json.dumps(said))
        for own in (True, False):
            await phone.write_message(json.dumps({"answer": 1, "to": 1, "name": "", "own": own}))
            await news(phone, "answered")

    asyncio.run(play())
    told = [(WHO, 1, 2.0, "converged", 0.5), (WHO, 1, 2.0, "diverged", 0.5)]
    assert heard == [*told, (WHO, True), (WHO, False)]


def test_a_slow_phone_gets_fewer_frames_and_the_newest_one(served):
    room = served.on_loop(served.rooms.begin)[0]

    async def play():
        phone = await joined(served, room.code)
        await news(phone, "state")
        for k in range(socket.WINDOW + 10):
            sent = frame()
            sent[0] = k
            served.on_loop(lambda sent=sent: [one.show(framed(sent.tobytes()), 0) for one in room.followers])
        got = [await asyncio.wait_for(phone.read_message(), 20) for _ in range(socket.WINDOW)]
        assert [np.frombuffer(one, "<f4")[0] for one in got] == [*range(socket.WINDOW)]
        await phone.write_message(json.dumps({"ack": 8}))
        newest = await asyncio.wait_for(phone.read_message(), 20)
        assert np.frombuffer(newest, "<f4")[0] == socket.WINDOW + 9

    asyncio.run(play())


@pytest.mark.parametrize("code, who, why", [("AAAA2222", WHO, 4404), ("AAAA2222", "short", 4408), ("%00", WHO, 4404)])
def test_a_wrong_code_or_name_is_told_by_the_reason_of_the_end(served, code, who, why):
    async def play():
        phone = await joined(served, code, who)
        assert await asyncio.wait_for(phone.read_message(), 20) is None and phone.close_code == why

    asyncio.run(play())


def test_nothing_that_phones_send_steers_the_class_or_breaks_it(served, caplog):
    """As many as STEINLAB_FUZZ says; each connection may send a few a second, and is closed for more."""
    count = int(os.environ.get("STEINLAB_FUZZ", 300))
    room = served.on_loop(served.rooms.begin)[0]
    served.on_loop(lambda: room.ask(NUMBER))
    before = served.on_loop(lambda: (dict(room.state), room.question))
    rng = random.Random(3)
    odd = [None, True, -1, 2**70, 1e309, "x" * 99, [], {}, [1] * 9, "\0", "💥", {"a": {}}]
    names = [
        "answer",
        "to",
        "name",
        "ack",
        "state",
        "question",
        "see",
        "freeze",
        "reveal",
        "end",
        "hide",
        "result",
        "ended",
        "of",
        "own",
    ]

    def message():
        kind = rng.randrange(4)
        if kind == 0:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
        if kind == 1:
            return "[" * rng.randrange(2000)
        return json.dumps({rng.choice(names): rng.choice(odd) for _ in range(rng.randrange(4))})

    async def play():
        sent = 0
        while sent < count:
            phone = await joined(served, room.code)
            for _ in range(socket.MESSAGES // 2):
                await phone.write_message(m := message(), binary=isinstance(m, bytes))
                sent += 1
            await phone.write_message(json.dumps({"answer": 0.5, "to": 1, "name": "", "own": False}))
            assert (await news(phone, "answered"))["mine"]["value"] == 0.5
            phone.close()
        rude = await joined(served, room.code)
        for _ in range(socket.MESSAGES + 5):
            await rude.write_message("{}")
        while await asyncio.wait_for(rude.read_message(), 20) is not None:
            pass
        assert rude.close_code == socket.RUDE

    asyncio.run(play())
    assert served.on_loop(lambda: (dict(room.state), room.question)) == before and len(room.answers) == 1
    assert not [record for record in caplog.records if record.exc_info]


class Stage:
    def __init__(self):
        self.heard = []

    def take(self, data):
        self.heard.append(data)


def test_a_stage_sends_through_its_own_websocket_and_takes_what_comes(served):
    stage, later = Stage(), []
    channel = Channel(stage.take, later.append)  # on a thread without a loop, as a cell of a lesson does
    channel.schedule(lambda: None)
    assert len(later) == 1 and not later.clear()
    assert served.on_loop(lambda: channel.send(frame())) is False  # nobody listens

    async def play():
        browser = await websocket_connect(f"{served.url}/frames/{channel.token}")
        await browser.write_message('{"ready": true}')
        await browser.write_message('{"ack": 7}')
        await browser.write_message("no json")
        until(lambda: stage.heard and later)
        assert stage.heard == [{"ack": 7}]  # the other one waits for the page's document
        later.pop()()
        assert stage.heard[1:] == [{"ready": True}]
        channel.schedule(lambda: channel.send(frame()))
        assert (await asyncio.wait_for(browser.read_message(), 20)) == frame().tobytes()
        stranger = await websocket_connect(f"{served.url}/frames/{'x' * 16}")
        assert await asyncio.wait_for(stranger.read_message(), 20) is None and stranger.close_code == 4404

    asyncio.run(play())


def test_a_page_that_has_ended_has_no_channel():
    async def play():
        stage = Stage()
        channel = Channel(stage.take, lambda call: None)
        token = channel.token
        assert token in CHANNELS
        del channel
        assert token not in CHANNELS

    asyncio.run(play())


# ---- what the class sees, and several processes


def test_what_the_class_sees_is_kept_in_the_link():
    seen = (("cards", (0,)), ("numbers", ("force", "sample_variance")), ("knobs", ("method.alpha",)))
    text = link.write([SEE], Look((), see=seen), Look(()))
    assert text == "see=cards~0;numbers~force,sample_variance;knobs~method.alpha"
    found, problems = link.read([SEE], {"see": text[4:]}, Look(()))
    assert found.see == seen and not problems
    for wrong in ("cards~x", "numbers~forc", "knobs~alpha", "cats~1"):
        found, problems = link.read([SEE], {"see": wrong}, Look(()))
        assert found.see == () and "llowed" in problems["see"]


def test_nginx_sends_a_class_to_its_own_process():
    servers = {"A": "127.0.0.1:9001", "B": "127.0.0.1:9002", "C": "other.host:9003"}
    text = configured((ASSETS / "nginx.conf").read_text(), "8123", servers)
    every = text.split("upstream steinlab {")[1].split("}")[0]
    assert re.findall(r"server (\S+);", every) == list(servers.values()) and "listen 8123;" in text
    assert re.findall(r"~/class/\(\?i:(.)\) room_(.);", text) == [(letter, letter) for letter in servers]
    assert dict(re.findall(r"upstream room_(.) { server (\S+); }", text)) == servers and ":5006" not in text
    assert set(PROCESSES) < set(LETTERS)


def test_a_class_outlives_the_page_that_leads_it(room):
    phone = Phone()
    room.join(phone, WHO)
    dismantle([runs.Runs(room, lambda call: None)])  # as when a lecturer loads the page again
    room.publish(alarm="still here")
    room.ask(NUMBER)
    assert room.leader() is None and room.answer(WHO, 1, 0.5, "") == ""
    assert phone.texts[1] == {"state": {"alarm": "still here"}}
