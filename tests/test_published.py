"""The published numbers: their sums by column, so that no entry changes unseen."""

import pytest

from stein_core.base.errors import UnknownName
from stein_core.papers.published import Value, published, tables

SUMS = {  # added up from the papers' tables, column by column
    ("svgd", "1"): (29.121, 28.545, -14.558, -13.772, 9013, 1001),
    ("smi", "2 standard"): (9.0, 18.7, 42.4, 11.6, 12.1, 32.7, 17.7, 19.5, 19.5, 24.8, 17.9, 17.8),
    ("smi", "2 gap10"): (27.6, 228.2, 580.4, 12.7, 101.6, 1169.6, 25.4, 24.3, 26.1, 27.3, 24.7, 26.4),
    ("smi", "3 one layer"): (4.817, 0.354, 4.715, 0.387, 0.640, 3.122),
    ("smi", "3 two layers"): (4.784, 0.463, 4.686, 0.413, 0.627, 3.219),
    ("smi", "4"): (2, 264, 264),
    ("smi", "5"): (200,),
    ("smi", "6"): (0.1040, 0.0039, 0.0035, 0.0024, 0.0013),
    ("smi", "7 standard"): (0.0018, 0.0072, 0.03105, 0.02205, 0.056655),
    ("smi", "7 gap10"): (0.00225, 0.06165, 0.12105, 0.06255, 0.0621),
    ("smi", "8"): (71671, 7964, 84, 165, 84),
    ("ensembles", "1 FashionMNIST"): (12.244, 12.696, 1148.874, 97.367, 0.277, 2.556),
    ("ensembles", "1 CIFAR10"): (11.088, 1110.902, 19.450, 1.820, 3.838),
    ("ksivi", "2"): (185.09, 306.73, 370.91),
    ("ksivi", "5"): (10.9395, 53.7270, 0.4615, 1.3082, 2.8296),
    ("ksivi", "6"): (0.2771, 0.2344, 0.3010),
    ("ksivi", "7"): (95.76, 148.61, 172.01),
}


def test_every_table_adds_up():
    assert {key for key, table in tables().items() if table.rows} == set(SUMS)
    for key, sums in SUMS.items():
        table = published(*key)
        assert {len(row) for row in table.rows.values()} == {len(table.columns)}
        found = [sum(value.value for value in column) for column in zip(*table.rows.values())]
        assert found == pytest.approx(sums, abs=1e-6), key


def test_a_table_that_is_lost_says_so_and_an_unknown_one_has_a_nearest_match():
    lost = [table for table in tables().values() if not table.rows]
    assert len(lost) == 6 and all(table.note for table in lost)
    assert published("smi", "2 gap10").value("Naval", "NUTS NLL") == Value(1094.6, 1690.9)
    assert published("svgd", "1").value("Year", "SVGD RMSE") == Value(8.684, None)
    with pytest.raises(UnknownName, match="did you mean 'smi 2 gap10'"):
        published("smi", "2 gap")
    with pytest.raises(UnknownName, match="Boston"):
        published("smi", "6").value("Bostn", "SMI")
