from framework_contract import Configuration

CONFIGURATION = Configuration(framework="keras-torch")
