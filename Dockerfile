# An image of mtpp for CI and clusters: docker build -t mtpp . && docker run --rm -v "$PWD:/work" mtpp partition model.onnx -k 4
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
ARG EXTRAS=run,report
COPY . /source
# The wheel and all that it needs, then an environment of nothing else: no pip, and no tests of other packages.
RUN pip wheel --no-cache-dir --disable-pip-version-check --wheel-dir /wheels "/source[${EXTRAS}]"
RUN python -m venv --without-pip /opt/mtpp \
 && pip --python /opt/mtpp/bin/python install --no-cache-dir --disable-pip-version-check \
      --no-index --find-links /wheels "mtpp[${EXTRAS}]" \
 && find /opt/mtpp -type d -name tests -prune -exec rm -rf {} + \
 && find /opt/mtpp -type d -name __pycache__ -empty -delete

FROM python:${PYTHON}-slim
COPY --from=build /opt/mtpp /opt/mtpp
# Machine code is for any processor of this architecture, as that in the wheel is: an image is built on one and runs on others.
ENV PATH=/opt/mtpp/bin:${PATH} \
    NUMBA_CACHE_DIR=/var/cache/mtpp \
    NUMBA_CPU_NAME=generic \
    NUMBA_CPU_FEATURES= \
    PYTHONDONTWRITEBYTECODE=1
# Any user may be given with --user: they read what is compiled here, and add what they compile.
RUN useradd --create-home --uid 1000 mtpp \
 && install --directory --owner=mtpp --mode=1777 /var/cache/mtpp /work
USER mtpp
# The wheel has most of it; the image has all, whatever command it is for.
RUN mtpp warmup && chmod -R a+rwX /var/cache/mtpp
WORKDIR /work
ENTRYPOINT ["mtpp"]
CMD ["--help"]
