from framework_contract import Configuration, Gap

CONFIGURATION = Configuration(
    framework="null",
    gaps=(Gap("never", "unavailable", "it lives in the host's own interpreter and cannot be missing"),),
)
