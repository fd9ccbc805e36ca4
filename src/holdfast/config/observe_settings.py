"""Defines the settings of what is recorded: the call log, metrics, traces."""

from pydantic import Field, SecretStr, model_validator

from holdfast.config.section import Section, endpoint_fault


class CallLogSettings(Section):
    """The log of calls: one row for each, without contents, queries or replacement texts."""

    enabled: bool = Field(True, description="Record every call.")
    keep_days: float = Field(30.0, gt=0, description="Days that a recorded call is kept.")
    max_rows: int = Field(200_000, gt=0, description="Calls kept of the user of this machine, and of each tenant.")
    preview: bool = Field(
        False, description="Also record the first bytes of contents, queries and replacement texts, in plain text."
    )
    preview_bytes: int = Field(256, gt=0, le=4_096, description="How many bytes a preview has.")


class MetricsSettings(Section):
    """Figures for Prometheus at /metrics, which takes the key in metrics.token and nothing else."""

    enabled: bool = Field(True, description="Count, and answer at /metrics.")


class TraceSettings(Section):
    """OpenTelemetry traces; needs the extra `otel`."""

    endpoint: str = Field("", description="URL of an OTLP collector over HTTP, such as http://HOST:4318; empty: none.")
    headers: dict[str, SecretStr] = Field({}, description="Headers sent with every export, such as a collector's key.")
    sample_ratio: float = Field(1.0, ge=0, le=1, description="Part of the calls that are traced.")

    @model_validator(mode="after")
    def _check_endpoint(self) -> "TraceSettings":
        if self.endpoint and (fault := endpoint_fault(self.endpoint)):
            raise ValueError(fault)
        return self


class ObserveSettings(Section):
    """What the server records about its own work."""

    calls: CallLogSettings = CallLogSettings()
    metrics: MetricsSettings = MetricsSettings()
    traces: TraceSettings = TraceSettings()
