"""Tests of what turns runs into verdicts; `tests/run --only harness` runs them."""

import json
import unittest

from harness import figures
from harness.cases import BARE, CASES, KAFKA, PER_CPU, RATE, Case, WayPoint, order


def case(**changes) -> Case:
    given = {"name": "c", "title": "t", "connections": 1, "partitions": 1, "way_points": ()}
    return Case(**(given | changes))


def line(**changes) -> str:
    given = {
        "requests": 100,
        "records": 1000,
        "bytes": 5_000_000,
        "seconds": 2.0,
        "server_cpu_s": 0.5,
        "load_cpu_s": 0.25,
        "p50_us": 10.5,
        "p99_us": 20.5,
        "p999_us": 30.5,
        "checked": "order",
    }
    return json.dumps(given | changes)


class Order(unittest.TestCase):
    def test_each_broker_is_first_as_often_and_neighbours_are_alike(self):
        rounds = order(4)
        brokers = [[name for name in names if name != BARE] for names in rounds]
        self.assertEqual(brokers, [["millstream", KAFKA], [KAFKA, "millstream"]] * 2)
        self.assertEqual([BARE in names for names in rounds], [True, False, True, False])

    def test_one_round_has_everything(self):
        self.assertEqual(sorted(order(1)[0]), sorted(["millstream", KAFKA, BARE]))


class Parsing(unittest.TestCase):
    def test_the_unit_follows_the_case(self):
        run = figures.parse(line(), case(), 0)
        self.assertEqual((run.figure(PER_CPU), run.figure(RATE)), (2000, 500))
        self.assertEqual(run.cpu_us_per_request, 5000)
        run = figures.parse(line(records=0), case(fill_requests=1), 0)
        self.assertEqual((run.figure(PER_CPU), run.figure(RATE)), (10, 2.5))

    def test_what_gives_no_figure_is_refused(self):
        for text in ["", "{}", "[]"]:
            with self.assertRaises(figures.Malformed, msg=text):
                figures.parse(text, case(), 0)
        for text in [line(server_cpu_s=None), line(records=0), line(seconds=0)]:
            with self.assertRaises(figures.Unusable, msg=text):
                figures.parse(text, case(), 0)

    def test_little_cpu_is_enough_where_the_rate_is_judged(self):
        by_rate = case(way_points=(WayPoint(KAFKA, RATE, 1.0),))
        self.assertEqual(figures.parse(line(server_cpu_s=0.09), by_rate, 0).figure(RATE), 500)
        with self.assertRaises(figures.Unusable):
            figures.parse(line(server_cpu_s=0.09), case(way_points=(WayPoint(KAFKA, PER_CPU, 1.0),)), 0)


class Judging(unittest.TestCase):
    def results(self, ours: list[int], kafka: list[int], bare: list[int], *points: WayPoint) -> figures.Results:
        results = figures.Results(case(way_points=points))
        for server, amounts in (("millstream", ours), (KAFKA, kafka), (BARE, bare)):
            for number, records in enumerate(amounts):
                results.runs[server].append(figures.parse(line(records=records), results.case, number))
        return results

    def test_ratios_are_of_the_same_round(self):
        # The machine is ten times slower in the second round, for both.
        results = self.results([3000, 330, 3300], [1000, 100, 1000], [])
        self.assertAlmostEqual(results.ratio(KAFKA, PER_CPU), 3.3)
        self.assertEqual(results.median("millstream", PER_CPU), 6000)

    def test_a_server_that_ran_in_some_rounds_is_compared_with_those(self):
        results = self.results([2000, 9000], [1, 1], [1000])
        self.assertAlmostEqual(results.ratio(BARE, PER_CPU), 2.0)

    def test_a_way_point_is_met_from_its_value_on(self):
        points = [WayPoint(KAFKA, PER_CPU, 3.0), WayPoint(KAFKA, PER_CPU, 3.1), WayPoint(BARE, RATE, 0.9)]
        results = self.results([3000], [1000], [3334], *points)
        self.assertEqual([verdict.met for verdict in results.verdicts()], [True, False, False])
        judged = figures.judged_table([results])
        self.assertEqual((judged.count("| met |"), judged.count("| MISSED |")), (1, 2))
        self.assertIn("| c | records per CPU second | 6000 | Kafka | 2000 | 3.00 | 3 | met |", judged)
        self.assertEqual(len(figures.detail_table([results]).splitlines()), 2 + 3)

    def test_warm_up_goes_on_while_it_gains(self):
        self.assertFalse(figures.settled([1.0, 1.0]))
        self.assertFalse(figures.settled([1.0, 2.0, 3.0]))
        self.assertFalse(figures.settled([1.0, 2.0, 3.0, 3.1]))
        self.assertFalse(figures.settled([1.0, 3.0, 3.2, 2.0]), "one slice is worse by chance")
        self.assertTrue(figures.settled([1.0, 3.0, 3.1, 3.0]))
        self.assertTrue(figures.settled([9.0, 2.0, 3.0]))
        self.assertFalse(figures.settled([9.0, 2.0, 3.0], missing_cpu=0.1))
        self.assertTrue(figures.settled([1.0] * figures.SLICES_MAX, missing_cpu=0.1), "but not for ever")
        self.assertTrue(figures.settled([2.0**slice for slice in range(figures.SLICES_MAX)]))

    def test_quantities_have_three_digits(self):
        found = [figures.quantity(value) for value in (0.123456, 12.34, 4321, 43210, 432100, 2_500_000, 3.2e9)]
        self.assertEqual(found, ["0.123", "12.3", "4321", "43.2 k", "432 k", "2.5 M", "3200 M"])


class Cases(unittest.TestCase):
    def test_they_differ_in_name_and_are_all_judged(self):
        self.assertEqual(len({case.name for case in CASES}), len(CASES))
        self.assertTrue(all(case.way_points for case in CASES))

    def test_durability_is_equal(self):
        disk = case(durability="disk")
        self.assertEqual(disk.configs_for("kafka")["flush.messages"], "1")
        self.assertEqual(disk.configs_for("millstream")["millstream.durability"], "disk")
        self.assertNotIn("flush.messages", case().configs_for("kafka"))
        self.assertEqual(case().configs_for("millstream")["millstream.durability"], "os")


if __name__ == "__main__":
    unittest.main()
