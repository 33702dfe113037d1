"""The table docs/OPERATORS.md."""


def summary(counts):
    counted = counts["pass"] + counts["fail"]
    share = 100 * counts["pass"] / max(counted, 1)
    return (
        f"{sum(counts.values())} cases: {counts['refused']} refused on purpose; of the other {counted}, "
        f"{counts['pass']} pass ({share:.1f} %) and {counts['fail']} fail"
    )


def document(outcomes):
    return ""
