#!/bin/sh
# What the tests of the engines need and a fresh machine has not: from Debian, and Ray into a virtual environment of its own.
# What cannot be had is said, and its tests are skipped.
set -eu
folder=$1
need=
for pair in sshd:openssh-server ssh:openssh-client mpirun:openmpi-bin slurmctld:slurmctld slurmd:slurmd \
    sbatch:slurm-client munged:munge ip:iproute2 pgrep:procps; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || need="$need ${pair##*:}"
done
if [ -n "$need" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing$need"
        # No service may start by itself: the tests start their own, in namespaces.
        policy=/usr/sbin/policy-rc.d
        if [ ! -e $policy ]; then
            printf '#!/bin/sh\nexit 101\n' >$policy
            chmod +x $policy
            trap 'rm -f $policy' EXIT
        fi
        export DEBIAN_FRONTEND=noninteractive
        { apt-get -qq update && apt-get -qq install -y --no-install-recommends $need >/dev/null; } ||
            echo "could not be installed:$need"
    else
        echo "not root, or no apt-get; without:$need"
    fi
fi
if [ ! -x "$folder/bin/ray" ]; then
    echo "installing Ray into $folder"
    python3 -m venv "$folder" && "$folder/bin/pip" install -q "ray==2.60.0" || echo "Ray could not be installed"
fi
