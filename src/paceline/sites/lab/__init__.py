"""The lab: several emulated hosts on one machine, each with its own address, name, cores and link.

`layout` decides what they should be, without acting. `cluster` makes them from `namespaces`, `links`, `delay` and
`cgroups`. `probe` measures the links, `ceiling` measures the fastest link that this machine can emulate, `awake` keeps
the cores from sleeping, and `faults` reads what is to go wrong. `site` joins all of these.
"""
