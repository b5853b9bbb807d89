"""The lab: several emulated hosts on one machine, each with its own address, name, cores and link.

`layout` says what they should be (pure), `cluster` makes them of `namespaces`, `links`, `delay` and `cgroups`, `probe`
measures the links, `ceiling` what this machine can carry at most, `faults` what is to go wrong; `site` joins them.
"""
