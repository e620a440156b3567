"""A page about the quadruped claims nothing of a robot that did not stand."""

import pytest

pytest.importorskip("mujoco", reason="the package mujoco is not installed")

import premise
import quad_page as page


def fallen(failure: str, impact_m_s: float, **more: object) -> dict:
    fall = {
        "before_height_m": 0.23,
        "before_let_down": 0,
        "damped_after_s": None if failure == "power-cut" else 0.1,
        "down_after_s": 0.5,
        "impact_m_s": impact_m_s,
        "peak_body_n": 100.0,
        "fastest_joint_rad_s": 1.0,
        "usual_up_m_s": 0.0,
        "following_up_m_s": 0.0,
        "damped_up_m_s": 0.0,
        "damped_rise_m": 0.0,
        "energy_rise_j": 0.0,
    }
    one = {
        "failure": failure,
        "gait": "trot",
        "seed": 1,
        "stood": True,
        "height_m": 0.1,
        "host": {"cause": None},
        "fall": fall,
    }
    return {**one, **more}


def killed(**fall: object) -> dict:
    """A host killed in real time; the next one finds servos that timed out."""
    one = fallen("host-killed", 0.2, host=None, physics={"skipped": 0, "steps": 9})
    one["second_host"] = {"refused": "servo 1 is in mode timeout from an earlier run; clear it", "cause": None}
    one["fall"].update(fall)
    one["stood"] = one["fall"]["before_height_m"] >= 0.18 and one["fall"]["before_let_down"] == 0
    return one


DROP = [fallen("power-cut", 1.5), fallen("power-cut", 1.5, gait="stand")]


def test_a_robot_that_lay_down_before_its_host_was_killed_shows_nothing() -> None:
    # As published once: damped 0 ms after the kill, since it had lowered itself.
    vacuous = killed(before_height_m=0.09, before_let_down=12, damped_after_s=0.0)
    answers = iter([vacuous, killed()])
    outcome = premise.repeated("host-killed", lambda: next(answers))
    assert outcome.told is not None and outcome.told["stood"] and outcome.attempts == 2
    assert "at 9 cm and 12 of 12 servos no longer followed" in outcome.invalid[0]
    assert page.holds_live(DROP, [outcome])
    text = page.real_time(DROP, [outcome], [])
    assert "| host-killed | 1 of 2 | yes, 23 cm |" in text and "- 1 x before the failure the body was at 9 cm" in text

    never = premise.repeated("host-killed", lambda: vacuous)
    assert never.told is None and never.attempts == premise.ATTEMPTS
    assert not page.holds_live(DROP, [never])
    assert "is not shown" in page.live_verdict(DROP, [never])
    assert "| host-killed | 5 of 5 | no | – |" in page.lives(DROP, [never])


@pytest.mark.parametrize(
    "wrong",
    [
        killed(damped_after_s=0.2),
        killed(damped_after_s=None),
        killed(impact_m_s=1.4),
        {**killed(), "second_host": {"refused": "servo 1 is in mode zero velocity from an earlier run", "cause": None}},
    ],
    ids=["late", "never", "hard", "another cause"],
)
def test_a_live_trial_is_held_against_the_same_limits(wrong: dict) -> None:
    outcome = premise.repeated("host-killed", lambda: wrong)
    assert outcome.told is not None
    assert not page.holds_live(DROP, [outcome])


def test_a_recording_of_a_robot_on_the_ground_is_no_cycle_of_a_trotting_one() -> None:
    lying = {
        "failure": "none",
        "stood": False,
        "height_m": 0.09,
        "host": {"refused": None, "cause": "servo 4 does not answer"},
    }
    outcome = premise.repeated("1000 Hz", lambda: lying)
    assert outcome.told is None and not page.trotted([outcome])
    text = page.cycle(outcome)
    assert "**Not shown**: in 5 of 5 recordings" in text and "servo 4 does not answer" in text and "µs" not in text


def test_virtual_falls_hold_only_of_a_robot_that_stood() -> None:
    fine = [*DROP, fallen("bus-cut", 0.2)]
    bus = page.failure("bus-cut", 0.0, 1).cut_bus
    assert bus is not None
    fine[2]["host"] = {"cause": f"servo {3 * bus + 1} does not answer"}
    assert page.holds(fine)
    assert not page.holds([*fine[:2], {**fine[2], "stood": False}])
