"""The machines that worked: those behind the hosts, and "unknown" where nobody told."""

from paceline.record.machines import Machine, machines_of

HERE = {"id": "a", "cpu_model": "EPYC", "kernel": "6.1", "accelerator": "none"}


def test_hosts_of_this_machine_are_this_machine():
    assert machines_of(["lab1", "lab2"], "lab", HERE) == tuple(
        Machine(host=host, cpu_model="EPYC", kernel="6.1", accelerator="none") for host in ("lab1", "lab2")
    )


def test_other_machines_are_what_they_tell_and_not_what_commands_them():
    told = [{"host": "node1", "cpu_model": "Xeon", "kernel": "5.4", "memory_bytes": 1}]

    assert machines_of(["node1", "node2"], "ssh", HERE, told) == (
        Machine(host="node1", cpu_model="Xeon", kernel="5.4", accelerator="unknown"),
        Machine(host="node2", cpu_model="unknown", kernel="unknown", accelerator="unknown"),
    )
