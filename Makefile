# Everything that is done with Foliot by hand or by CI. Each target installs what
# it needs on a fresh Debian 12 machine; a second run costs seconds.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON := .venv/bin/python
FOLIOT := build/release/bin/foliot
# What tests said, as JUnit's XML.
REPORTS := $(CURDIR)/build/release/reports

# onnxruntime reports what it is used for unless this is set.
export ORT_DISABLE_TELEMETRY := 1

# When the first make began, in seconds.
ifndef FOLIOT_MAKE_BEGAN
export FOLIOT_MAKE_BEGAN := $(shell date +%s)
endif
say = @took=$$(($$(date +%s) - FOLIOT_MAKE_BEGAN)); after=; \
  if ((took >= 60)); then after=" (after $$((took / 60)) min $$((took % 60)) s)"; fi; printf '\n== %s%s\n' "$(1)" "$$after"

##@ Start here

.PHONY: help
help: ## Say what can be made
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z%-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: dependencies ## Watch real predictions being served within their deadlines (6 to 12 minutes on two cores at first, then 1)
	@$(MAKE) --jobs=2 build-server python
	$(call say,Demo: handwritten digits beside a ResNet-50 under a 50 ms deadline)
	@$(PYTHON) examples/demo/demo.py --foliot $(FOLIOT) --output out

.PHONY: test
test: build python ## Run every test: checks, unit tests, end-to-end tests (half an hour and more, on two cores, at first)
	@$(MAKE) check-built
	$(call say,Unit tests)
	@rm -rf $(REPORTS)/unit
	@tools/run-tests ctest --test-dir build/release
	$(call say,End-to-end tests against a real server)
	@FOLIOT=$(abspath $(FOLIOT)) tools/run-tests pytest tests --junitxml=$(REPORTS)/end_to_end.xml
	$(call say,Kernels as lesser processors have them)
	@$(PYTHON) tools/test-instruction-sets --only AVX2 --only AVX512_CORE
	$(call say,Skipped tests)
	@$(PYTHON) tools/check_skips.py $(REPORTS)/unit/*.xml $(REPORTS)/end_to_end.xml

##@ Building

.PHONY: dependencies
dependencies: ## Install the Debian packages that are missing
	@tools/install-dependencies

.PHONY: python
python: dependencies ## Make the Python environment .venv of the tools, tests and the demo
	@tools/python-environment

.PHONY: build
build: build-release ## Build the optimised server, build/release/bin/foliot

.PHONY: build-server
build-server: configure-release ## Build only the server, without its tests
	$(call say,Building the server in build/release)
	@cmake --build build/release --target foliot

# build-release, build-debug, build-clang, build-asan, build-tsan: CMakePresets.json.
build-%: configure-%
	$(call say,Building $* in build/$*)
	@cmake --build build/$*

configure-%: dependencies
	@if [[ ! -f build/$*/build.ninja ]]; then \
	  cmake --preset $* -DCMAKE_CXX_COMPILER_LAUNCHER=$$(command -v ccache || true); \
	fi

.PHONY: wheel
wheel: build-server python ## Make the wheel dist/foliot-VERSION-py3-none-manylinux_..._x86_64.whl: the server and all its libraries
	$(call say,Wheel)
	@tools/python-environment wheel
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(PYTHON) packaging/wheel.py --program $(FOLIOT) --output dist

.PHONY: deb
deb: build-server ## Make the Debian package dist/foliot_VERSION_amd64.deb: the server, its units, /etc/foliot/foliot.toml
	$(call say,Debian package)
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) python3 packaging/deb.py --program $(FOLIOT) --output dist

.PHONY: image
image: deb ## Make the OCI images dist/foliot_VERSION[-python]_amd64.oci.tar of Debian's packages, without a registry
	$(call say,Images)
	@tools/install-dependencies mmdebstrap
	@for python in "" --python; do SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) python3 packaging/image.py \
	  --package $$(ls dist/foliot_*_amd64.deb) --output dist $$python; done

.PHONY: release
release: ## Make wheel, Debian package, images and checksums of the commit that is checked out, into dist/
	@[[ -z $$(git status --porcelain) ]] || { echo "make release: there are changes that are in no commit; commit or stash them" >&2; exit 1; }
	@rm -rf dist
	@$(MAKE) wheel image site
	@tools/install-dependencies lintian
	@lintian --fail-on error,warning dist/*.deb
	@$(PYTHON) -m pytest tests/image_install.py
	@cd dist && sha256sum *.whl *.deb *.oci.tar > SHA256SUMS && cat SHA256SUMS

SITE := build/site-environment
$(SITE)/made: python/requirements-site.txt
	@python3 -m venv --clear $(SITE)
	@$(SITE)/bin/pip --disable-pip-version-check --quiet install --requirement $<
	@touch $@

.PHONY: site
site: dependencies $(SITE)/made ## Make the site of the documents, build/site/index.html, with a search that works without a network
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet
	$(call say,build/site/index.html)

.PHONY: clean
clean: ## Remove what was built; the Python environment stays
	rm -rf build dist out

##@ Checking

.PHONY: check
check: build ## Format, layers, language, link tests, headers that compile alone
	@$(MAKE) check-built check-headers

.PHONY: check-built
check-built:
	$(call say,Checks)
	@tools/check build/release

.PHONY: check-headers
check-headers: build ## Each header compiles alone (six minutes at first; CI has it by turns)
	$(call say,Headers that compile alone)
	@tools/check_headers.py --build build/release

.PHONY: lint
lint: dependencies ## clang-tidy over all of src/ (slow)
	$(call say,clang-tidy)
	@tools/lint

.PHONY: lint-changed
lint-changed: dependencies ## clang-tidy over what differs from origin/main, or from 20 commits before
	$(call say,clang-tidy over what changed)
	@tools/lint --changed

.PHONY: format
format: dependencies ## Format src/ in place
	@find src -name '*.h' -o -name '*.cc' | xargs clang-format -i

.PHONY: test-clients
test-clients: build python ## Clients as their authors ship them (kserve, tritonclient, ...) against a server (5 minutes)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) tests/client_matrix.py $(FLAGS)

.PHONY: test-browser
test-browser: build python ## The monitor page in Debian's chromium: what it shows, keyboard, axe (2 minutes; chromium is 400 MB)
	@tools/install-dependencies chromium
	@tools/python-environment browser
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) -m pytest tests/monitor_page.py

.PHONY: grafana
grafana: build-server python ## Start a server under load and a Prometheus for the dashboard of deploy/grafana, and say where they are
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) tools/grafana

.PHONY: test-wheel
test-wheel: wheel ## The wheel in a fresh environment: a file and a container are served (a minute)
	@$(PYTHON) -m pytest tests/wheel_install.py

.PHONY: test-image
test-image: image python ## The images as a runtime starts them: user, TLS and keys, a broken model, health check (a minute; root)
	@$(PYTHON) -m pytest tests/image_install.py

.PHONY: test-clang
test-clang: build-clang ## The unit tests, built by clang
	@tools/run-tests ctest --test-dir build/clang

.PHONY: test-asan
test-asan: build-asan ## The unit tests under the address and undefined-behaviour sanitizers
	@UBSAN_OPTIONS=print_stacktrace=1 tools/run-tests ctest --test-dir build/asan

# What the sanitizers run in parts, each of some ten minutes on two cores: rooms of code that reads bytes from
# outside, shares memory or counts references, without those that bring servers up (address, undefined behaviour);
# and rooms that have threads. The corpora of their fuzzers are replayed with the tests.
SANITIZED := asan-1 asan-2 asan-3 asan-4 tsan-1 tsan-2 tsan-3
ROOMS_asan-1 := foundation/base foundation/logging foundation/core foundation/platform foundation/process \
  foundation/config foundation/access observe/request_log observe/metrics load/workload engine/program engine/worker
FUZZERS_asan-1 := bounded_row_fuzz toml_reader_fuzz package_fuzz
ROOMS_asan-2 := control/controller control/policies/common control/policies/clockwork control/policies/foliot \
  control/policies virtual/world virtual/simulation virtual/bounds
ROOMS_asan-3 := cluster/transport cluster/sessions virtual/cluster virtual/emulation answer/selection edge/jobs
FUZZERS_asan-3 := codec_fuzz job_request_fuzz npy_header_fuzz
ROOMS_asan-4 := engine/compiler
FUZZERS_asan-4 := compiler_fuzz
ROOMS_tsan-1 := foundation/base foundation/platform foundation/process observe/request_log engine/worker \
  cluster/transport cluster/sessions
FUZZERS_tsan-1 := codec_fuzz
ROOMS_tsan-2 := edge/requests edge/http edge/grpc edge/jobs answer/selection
FUZZERS_tsan-2 := http_server_fuzz json_request_fuzz job_request_fuzz npy_header_fuzz
ROOMS_tsan-3 := node/files node/threads node/tuning node/devices node/replicas node/repository node/server
empty :=
names_of = $(subst /,_,$(strip $(1)))
pattern_of = ^($(subst $(empty) ,|,$(names_of)))([/-]|$$)

.PHONY: test-sanitizers
test-sanitizers: $(addprefix test-,$(SANITIZED)) ## All that CI runs under sanitizers, of which each run of CI has a part (an hour)

test-asan-%: configure-asan
	$(call say,Address and undefined-behaviour sanitizers: $(ROOMS_asan-$*))
	@cmake --build build/asan --target $(addsuffix _test,$(call names_of,$(ROOMS_asan-$*))) $(addsuffix _replay,$(FUZZERS_asan-$*))
	@FOLIOT_HOME_SEEDS=20 UBSAN_OPTIONS=print_stacktrace=1 \
	  tools/run-tests ctest --test-dir build/asan --tests-regex '$(call pattern_of,$(ROOMS_asan-$*))'

test-tsan-%: configure-tsan
	$(call say,Thread sanitizer: $(ROOMS_tsan-$*))
	@cmake --build build/tsan --target $(addsuffix _test,$(call names_of,$(ROOMS_tsan-$*))) $(addsuffix _replay,$(FUZZERS_tsan-$*))
	@TSAN_OPTIONS="ignore_noninstrumented_modules=1 suppressions=$(CURDIR)/tools/tsan.suppressions second_deadlock_stack=1" \
	  tools/run-tests ctest --test-dir build/tsan --tests-regex '$(call pattern_of,$(ROOMS_tsan-$*))'

.PHONY: test-isas
test-isas: build python ## Every test under ONEDNN_MAX_CPU_ISA = AVX2, AVX512_CORE, AVX512_CORE_VNNI and unset (an hour)
	@$(PYTHON) tools/test-instruction-sets --all

.PHONY: mutation-check
mutation-check: dependencies ## Break 30 lines one at a time, and see that the unit tests notice (half an hour; FLAGS='--seed 2')
	$(call say,Mutation check)
	@tools/mutation_check $(FLAGS)

.PHONY: planted-bugs
planted-bugs: dependencies ## Plant 22 bugs in the cluster's protocols one at a time, and see that simulated seeds find each (an hour)
	$(call say,Planted bugs)
	@tools/planted_bugs $(FLAGS)

.PHONY: determinism
determinism: configure-release configure-clang ## The same seeds give the same events, built by g++ and by clang
	$(call say,Event hashes of g++ and clang)
	@cmake --build build/release --target virtual_world_test
	@cmake --build build/clang --target virtual_world_test
	@tools/compare_events build/release/bin/virtual_world_test build/clang/bin/virtual_world_test

.PHONY: test-classic-models
test-classic-models: build python ## 25 models of scikit-learn, XGBoost and LightGBM against onnxruntime (2 minutes)
	@tools/python-environment classic
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) tests/classic_models.py $(FLAGS)

.PHONY: test-catboost
test-catboost: build python ## Files of CatBoost, compiled, beside the library (minutes)
	@tools/python-environment classic
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) -m pytest tests/compiled_catboost.py

.PHONY: test-torch-exports
test-torch-exports: build python ## 31 networks of torchvision, timm and transformers, by both of torch's exporters (half an hour; 6 GiB)
	@tools/python-environment torch
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) tests/torch_exports.py $(FLAGS)

.PHONY: test-torch-containers
test-torch-containers: python ## The adapter of PyTorch for containers, with torch (minutes; 6 GiB)
	@tools/python-environment torch
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) -m pytest tests/torch_containers.py

.PHONY: test-gpu
test-gpu: build python ## Containers on a GPU, with torch (minutes; 6 GiB; wants one of NVIDIA's GPUs)
	@tools/python-environment torch
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) -m pytest tests/gpu_containers.py

.PHONY: test-spark
test-spark: build python ## Retraining of a personal model on Spark, local[2], 200,000 ratings (minutes; Java, 900 MB of packages)
	@tools/install-dependencies openjdk-17-jre-headless
	@tools/python-environment spark
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) -m pytest tests/spark_retraining.py

.PHONY: node-tests
node-tests: build python ## The node tests of ONNX (part of `make test`, too); writes docs/OPERATORS.md
	@$(PYTHON) tests/node_tests/node_tests.py --runner build/release/bin/node_test_runner --verbose --write docs/OPERATORS.md

.PHONY: fuzz-models
fuzz-models: build python ## Random models beside onnxruntime for FUZZ_SECONDS=60, under a fresh seed (part of `make test`, too)
	@$(PYTHON) tests/fuzz_models/fuzz_models.py --runner build/release/bin/node_test_runner --seconds $(or $(FUZZ_SECONDS),60) --keep

.PHONY: fuzz-exports
fuzz-exports: build python ## Random networks of torch, scikit-learn, XGBoost, LightGBM and CatBoost, as they export them, for FUZZ_SECONDS=600 (6 GiB)
	@tools/python-environment exports
	@$(PYTHON) tests/fuzz_exports/fuzz_exports.py --runner build/release/bin/node_test_runner --seconds $(or $(FUZZ_SECONDS),600) $(FLAGS)

##@ Longer

.PHONY: fuzz
fuzz: build-fuzz ## Fuzz whatever reads bytes from outside, each for FUZZ_SECONDS=60
	$(call say,Fuzzing)
	@tools/fuzz

.PHONY: faults
faults: build ## Thousands of fault schedules in virtual time (SEEDS=10000) under three policies; checkers must be silent
	@$(FOLIOT) simulate examples/simulate/faults.toml --seeds $(or $(SEEDS),10000)
	@$(FOLIOT) simulate examples/simulate/links.toml --seeds $(or $(SEEDS),10000)

.PHONY: soak
soak: build python ## Mixed traffic with trouble for SOAK_SECONDS=600; nothing may leak or die
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) tests/figures/soak.py

.PHONY: soak-cluster
soak-cluster: build python ## The same with processes that are killed, stopped and frozen at random, for SOAK_SECONDS=600
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) tests/figures/soak_cluster.py

.PHONY: figures
figures: build python ## Measure the figures that Foliot promises: overload, many models, restart, faults
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) tests/figures/all.py

.PHONY: experiments
experiments: build python ## The Clockwork paper's experiments in virtual time, drawn, into docs/EXPERIMENTS.md (20 minutes)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/experiments.py $(FLAGS)

.PHONY: zoo
zoo: build python ## Every network of tools/models at every batch size against onnxruntime (an hour; ZOO=--resume goes on)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) tests/zoo_check.py $(ZOO)

.PHONY: bench-runtime
bench-runtime: build python ## Foliot's runtime beside onnxruntime and OpenVINO: medians and tails (an hour; FLAGS=--quick: minutes)
	@tools/python-environment bench
	@cmake --build build/release --target runtime_runner
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/runtime.py $(FLAGS)

.PHONY: bench-operators
bench-operators: build python ## Every operator with what is fused into it, beside onnxruntime and OpenVINO (two hours; FLAGS='--sample 100': minutes)
	$(call say,Operators beside onnxruntime and OpenVINO)
	@tools/python-environment bench
	@cmake --build build/release --target runtime_runner
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/operators.py $(FLAGS)

.PHONY: bench-start
bench-start: build python ## How long ResNet-50 and BERT-base take to start, beside onnxruntime (minutes)
	@cmake --build build/release --target runtime_runner
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/start.py $(FLAGS)

.PHONY: bench-first-answer
bench-first-answer: build python ## First answers of models that were never compiled: of one, and of twenty at once (3 minutes)
	$(call say,First answers with an empty cache)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/first_answer.py $(FLAGS)

.PHONY: bench-tail
bench-tail: build python ## How long the slowest runs take, beside arithmetic in the same seconds (15 minutes; FLAGS='--turns 1000': a look)
	@cmake --build build/release --target runtime_runner
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/tail.py $(FLAGS)

.PHONY: bench-precisions
bench-precisions: build python ## What bfloat16 and int8 gain over float32 (20 minutes)
	@cmake --build build/release --target runtime_runner
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/precisions.py $(FLAGS)

.PHONY: bench-trees
bench-trees: build python ## Ensembles of 500 trees beside onnxruntime (2 minutes)
	@tools/python-environment classic
	@cmake --build build/release --target runtime_runner
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/trees.py $(FLAGS)

.PHONY: bench-serve
bench-serve: build python ## Latency and throughput of small models through HTTP and gRPC
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/serve.py

.PHONY: bench-request-cost
bench-request-cost: build python ## Processor time of the server for each request, by protocol and rate (3 minutes)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/request_cost.py $(FLAGS)

.PHONY: bench-lanes
bench-lanes: build python ## A lane for each core beside one wide device and a device for each core (20 minutes)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/lanes.py $(FLAGS)

.PHONY: bench-lanes-rivals
bench-lanes-rivals: build python ## The same loads beside OpenVINO and onnxruntime behind the same deadline (25 minutes; FLAGS=--quick: four)
	@tools/python-environment bench
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/lanes.py --rivals $(FLAGS)

.PHONY: bench-overlap
bench-overlap: build python ## Pairs of models beside each other on lanes, profiled and served (90 minutes)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/overlap.py $(FLAGS)

.PHONY: bench-beside
bench-beside: build python ## Two models at the same time, on a core each: what it costs, and what it gains over both cores in turn (5 minutes)
	@cmake --build build/release --target runtime_runner
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/beside.py $(FLAGS)

.PHONY: bench-neighbours
bench-neighbours: build python ## Two threads beside busy processes, beside onnxruntime and OpenVINO (15 minutes)
	@cmake --build build/release --target runtime_runner
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/neighbours.py $(FLAGS)

.PHONY: bench-containers
bench-containers: build python ## Containers of scikit-learn with and without batching, as in Clipper's figures (15 minutes)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/containers.py $(FLAGS)

.PHONY: bench-applications
bench-applications: build python ## Applications of scikit-learn models, as in Clipper's figures (8 minutes; FLAGS=--quick: 3)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/applications.py $(FLAGS)

.PHONY: bench-tasks
bench-tasks: build python ## A job of many images beside requests, and a task beside each of its variants alone (40 minutes)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/tasks.py $(FLAGS)

.PHONY: test-mlserver
test-mlserver: build python ## Foliot beside mlserver, MLflow and scikit-learn: the same folders, requests and tables (10 minutes)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) tests/mlserver_matrix.py $(FLAGS)

.PHONY: bench-mlserver
bench-mlserver: build python ## Folders of MLServer behind Foliot and behind mlserver 1.7.1: throughput, p99, memory of 100 models (10 minutes)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/mlserver.py $(FLAGS)

.PHONY: bench-rivals
bench-rivals: build python ## A scikit-learn model behind containers and behind mosec, LitServe, BentoML and PyTriton (25 minutes; FLAGS='--model network': one of PyTorch)
	@$(if $(findstring network,$(FLAGS)),tools/python-environment torch)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/rivals.py $(FLAGS)

.PHONY: bench-loadgen
bench-loadgen: build python ## MLPerf LoadGen, scenario Server, against a small ResNet-50: its verdict
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/loadgen.py

.PHONY: bench-learning
bench-learning: python ## How much of a retraining's gain personal models recover online (minutes; FLAGS='--ratings 10000000 --quick')
	@$(PYTHON) bench/personal_learning.py $(FLAGS)

.PHONY: bench-personal-rivals
bench-personal-rivals: build python ## Personal models beside Vowpal Wabbit, implicit and retrained ALS after 1 to 50 new ratings (10 minutes)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/personal_rivals.py $(FLAGS)

.PHONY: bench-personal-serving
bench-personal-serving: build python ## Observations, predictions and topk of a personal model over HTTP and gRPC: rates, latencies
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/personal_serving.py $(FLAGS)

.PHONY: bench-personal-beside
bench-personal-beside: build python ## Personal models beside a network's requests, and under 20 retrainings (15 minutes)
	@FOLIOT=$(abspath $(FOLIOT)) $(PYTHON) bench/personal_beside.py $(FLAGS)

bench-%: build ## The benchmark of %_bench.cc, e.g. bench-load: LOAD beside memcpy and direct reads
	@cmake --build build/release --target $*_bench
	@build/release/bin/$*_bench
