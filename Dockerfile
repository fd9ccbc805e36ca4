# Holdfast as a container: an unprivileged user, nothing written outside the two volumes and /tmp.
#   docker build -t holdfast --build-arg COMMIT="$(git describe --always --dirty --exclude='*' --abbrev=12)" .
#   docker run --rm --read-only --tmpfs /tmp -p 127.0.0.1:8124:8124 -v "$PWD:/data/target" -v holdfast:/data/state holdfast
# docs/how-to/containers.md has the rest. BASE is any image with Python 3.11 or newer as python3.
ARG BASE=docker.io/library/python:3.13-slim-bookworm

# Builds the wheel with the console in it, and installs it. Node.js comes from a wheel; nothing of this stage but /opt/holdfast stays.
FROM ${BASE} AS build
WORKDIR /src
COPY requirements/setup.txt requirements/web.txt requirements/image.txt requirements/
RUN python3 -m venv /build \
    && /build/bin/python -m pip install --no-cache-dir --require-hashes -r requirements/setup.txt \
    && /build/bin/uv pip install --no-cache --python /build/bin/python --require-hashes -r requirements/web.txt
COPY web web
COPY scripts/build_web.py scripts/hatch_hook.py scripts/
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY src src
ARG COMMIT=
RUN if [ -n "${COMMIT}" ]; then echo "${COMMIT}" > COMMIT; fi \
    && /build/bin/python scripts/build_web.py \
    && /build/bin/hatchling build -t wheel -d /dist
RUN python3 -m venv --without-pip /opt/holdfast \
    && /build/bin/uv pip install --no-cache --compile-bytecode --python /opt/holdfast/bin/python --require-hashes -r requirements/image.txt \
    && /build/bin/uv pip install --no-cache --compile-bytecode --python /opt/holdfast/bin/python --no-deps /dist/*.whl

FROM ${BASE}
ENV PATH=/opt/holdfast/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/tmp \
    HOLDFAST_STATE_DIR=/data/state \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ROOT_DIR=/data/target
RUN groupadd --gid 1000 holdfast \
    && useradd --uid 1000 --gid 1000 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin holdfast \
    && install -d -o 1000 -g 1000 -m 0755 /data /data/target \
    && install -d -o 1000 -g 1000 -m 0700 /data/state
COPY --from=build /opt/holdfast /opt/holdfast
USER 1000:1000
WORKDIR /data/target
VOLUME ["/data/target", "/data/state"]
EXPOSE 8124
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["holdfast", "status"]
ENTRYPOINT ["holdfast"]
CMD ["serve", "--host", "0.0.0.0", "--trusted-proxy", "gateway"]
