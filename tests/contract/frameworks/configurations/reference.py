from framework_contract import Configuration, Gap

CONFIGURATION = Configuration(
    framework="reference",
    gaps=(Gap("never", "*", "it judges the others and is never measured; test_reference.py judges it against NumPy"),),
)
