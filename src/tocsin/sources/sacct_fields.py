"""Names of sacct's columns in all versions from 14.11 to 25.05, to detect mistyped ones."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["SACCT_FIELDS", "closest", "unknown_fields"]

SACCT_FIELDS = tuple(
    """
    Account AdminComment AllocCPUS AllocGRES AllocNodes AllocTRES AssocID AveCPU AveCPUFreq AveDiskRead AveDiskWrite
    AvePages AveRSS AveVMSize BlockID Cluster Comment Constraints ConsumedEnergy ConsumedEnergyRaw Container CPUTime
    CPUTimeRAW DBIndex DerivedExitCode DerivedExitStr DerivedES Elapsed ElapsedRaw Eligible End ExitCode Extra
    FailedNode Flags GID Group JobID JobIDRaw JobName Layout Licenses MaxDiskRead MaxDiskReadNode MaxDiskReadTask
    MaxDiskWrite MaxDiskWriteNode MaxDiskWriteTask MaxPages MaxPagesNode MaxPagesTask MaxRSS MaxRSSNode MaxRSSTask
    MaxVMSize MaxVMSizeNode MaxVMSizeTask McsLabel MinCPU MinCPUNode MinCPUTask NCPUS NNodes NodeList NTasks
    Partition Planned PlannedCPU PlannedCPURAW Priority QOS QOSRAW QOSREQ Reason ReqCPUFreq ReqCPUFreqGov
    ReqCPUFreqMax ReqCPUFreqMin ReqCPUS ReqGRES ReqMem ReqNodes ReqTRES Reservation ReservationId Reserved ResvCPU
    ResvCPURAW Restarts SegmentSize SLUID Start State StdErr StdIn StdOut Submit SubmitLine Suspended SystemComment
    SystemCPU Timelimit TimelimitRaw TotalCPU TRESUsageInAve TRESUsageInMax TRESUsageInMaxNode TRESUsageInMaxTask
    TRESUsageInMin TRESUsageInMinNode TRESUsageInMinTask TRESUsageInTot TRESUsageOutAve TRESUsageOutMax
    TRESUsageOutMaxNode TRESUsageOutMaxTask TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask TRESUsageOutTot
    UID User UserCPU WCKey WCKeyID WorkDir
    """.split()  # noqa: SIM905 - a hundred quoted words would be harder to read
)
_NAMES = {name.lower(): name for name in SACCT_FIELDS}


def unknown_fields(names: Iterable[str]) -> list[str]:
    """Names that no version of sacct has; the empty last column of `sacct -p` is ignored."""
    return [name for name in names if name and name.lower() not in _NAMES]


def closest(name: str) -> str | None:
    """The closest name, if any is close."""
    found = get_close_matches(name.lower(), _NAMES, n=1)
    return _NAMES[found[0]] if found else None
