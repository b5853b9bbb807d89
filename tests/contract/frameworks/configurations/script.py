from framework_contract import Configuration, Gap

CONFIGURATION = Configuration(
    framework="script",
    gaps=(
        Gap("never", "*", "it runs a user's program, not our models; test_own_workloads.py holds it to its promises"),
    ),
)
