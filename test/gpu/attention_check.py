"""Checks and times the attention texts that `fsdpq_gpu attention` wrote, on one GPU.

  python3 attention_check.py FOLDER               check all texts in FOLDER
  python3 attention_check.py FOLDER --time        time them beside torch's flash and cuDNN
      --only REGEX   groups (family-heads-kvheads-headdim[-window]-packed|apart) that match
      --quick        a few small cases a group
      --jobs N       groups checked at once (3); timing runs alone
      --limit S      seconds without news after which a child process is killed (60)
      --trap         wgmma texts whose barriers report a wait of two seconds and stop

Needs torch with CUDA, libnvrtc and libcuda (both by ctypes). Prints one JSON line a
case, flushed; the last line sums up. Every group runs in a child process, so that a hang
costs one kernel of one group: the child goes on with the kernels behind it.

A check fills the outputs with NaN, launches, and compares with a float32 computation:
"error" is ||x - ref|| / ||ref||, "row" the largest of single rows (against at least a
tenth of the root mean square of all rows). It also sees that nothing else was
written (the columns of the other gradients, a margin behind the rows) and that five
launches give the same bits. Texts of wgmma must have been compiled without spills and
without "wgmma serialized".
"""
import argparse, ctypes, glob, json, math, os, re, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor

KINDS = ("forward", "delta", "grad_q", "grad_kv")
LIMITS = {"lse": (1e-5, 1e-3), "delta": (1e-4, 1e-2)}  # of error and row
LIMIT = (8e-3, 0.15)
MARGIN = 8  # rows behind the last one


def say(**line):
    print(json.dumps(line), flush=True)


# ------------------------------------------------------------------ groups of texts
def group_name(d):
    return (f"{d['family']}-{d['heads']}-{d['kvHeads']}-{d['headDim']}"
            + (f"-w{d['window']}" if d["window"] else "")
            + ("-packed" if d["packed"] else "-apart"))


def read_groups(folder, only):
    groups = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        d = json.load(open(path))
        d["path"] = path[:-5] + ".cu"
        if re.search(only, group_name(d)):
            groups.setdefault(group_name(d), {})[d["kind"]] = d
    return groups


# ------------------------------------------------------------------ NVRTC and driver
def load_nvrtc():
    names = ["libnvrtc.so.13", "libnvrtc.so", "libnvrtc.so.12"]
    for p in sys.path:
        names += sorted(glob.glob(os.path.join(p, "nvidia", "*", "lib", "libnvrtc.so.1?")))
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")):
        if home:
            names.append(os.path.join(home, "lib64", "libnvrtc.so"))
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise SystemExit("no libnvrtc found")


TRAP = r'''DEV void mb_wait(u32 b, u32 parity) { u64 t0 = 0, t; u32 ok; for (;;) {
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(ok) : "r"(b), "r"(parity) : "memory"); if (ok) return;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); if (!t0) t0 = t;
  if (t - t0 > 2000000000ull) { if ((threadIdx.x & 31) == 0) printf("stuck: block %d thread %d barrier at %u parity %u\n", blockIdx.x, threadIdx.x, b, parity); t0 += 4000000000ull; asm volatile("nanosleep.u32 1000000;"); asm volatile("trap;"); } } }
'''


def compile_text(nvrtc, d, architecture, trap):
    text = open(d["path"]).read()
    if trap:
        text = re.sub(r"DEV void mb_wait\(.*\n", lambda _: TRAP, text)
    program = ctypes.c_void_p()
    start = time.perf_counter()
    rc = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(),
                                  os.path.basename(d["path"]).encode(), 0, None, None)
    options = [f"--gpu-architecture={architecture}", "--std=c++17", "-default-device",
               "--ptxas-options=-v"]
    array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    rc = rc or nvrtc.nvrtcCompileProgram(program, len(options), array)
    seconds = time.perf_counter() - start
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    log = log.value.decode()
    if rc:
        raise RuntimeError(f"NVRTC says {rc} of {d['path']}:\n{log[:3000]}")
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    d["info"] = {
        "seconds": round(seconds, 2),
        "registers": [int(x) for x in re.findall(r"Used (\d+) registers", log)],
        "spills": [int(x) for x in re.findall(r"(\d+) bytes spill stores", log)],
        "notes": re.findall(r"\((C\d+)\)", log)}
    return cubin.raw


class Driver:
    def __init__(self):
        self.cu = ctypes.CDLL("libcuda.so.1")

    def check(self, rc, what):
        if rc:
            name = ctypes.c_char_p()
            self.cu.cuGetErrorName(rc, ctypes.byref(name))
            raise RuntimeError(f"{what}: {rc} {name.value}")

    def load(self, cubin, d):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.cu.cuModuleLoadData(ctypes.byref(module), cubin),
                   "cuModuleLoadData")
        self.check(self.cu.cuModuleGetFunction(ctypes.byref(function), module,
                                               d["symbol"].encode()), d["symbol"])
        if d["launch"]["sharedBytes"]:
            self.check(self.cu.cuFuncSetAttribute(function, 8,
                                                  d["launch"]["sharedBytes"]),
                       f"{d['launch']['sharedBytes']} bytes of shared memory")
        d["function"] = function

    def tensor_map(self, m, pointer, nbytes):
        """128 bytes: a view of bf16 elements, swizzled by 128 bytes, zeros outside."""
        rows = -(-(nbytes // 2 - m["begin"]) // m["pitch"])
        buffer = ctypes.create_string_buffer(128 + 64)
        address = (ctypes.addressof(buffer) + 63) & ~63
        u64, u32 = ctypes.c_uint64, ctypes.c_uint32
        self.check(self.cu.cuTensorMapEncodeTiled(
            ctypes.c_void_p(address), 9, 2, ctypes.c_void_p(pointer + 2 * m["begin"]),
            (u64 * 2)(m["columns"], rows), (u64 * 1)(m["pitch"] * 2),
            (u32 * 2)(m["boxColumns"], m["boxRows"]), (u32 * 2)(1, 1), 0, 3, 3, 0),
            "cuTensorMapEncodeTiled")
        return ctypes.string_at(address, 128)

    def bind(self, d, arguments, items, blocks):
        """arguments: (tensor, bytes) or int (i64). The result launches on the current
        stream; it keeps the tensors."""
        import torch
        shape = d["launch"]
        values = [ctypes.c_longlong(a) if isinstance(a, int)
                  else ctypes.c_void_p(a[0].data_ptr()) for a in arguments]
        values.append(ctypes.c_longlong(items))
        for m in shape["maps"]:
            tensor, nbytes = arguments[m["argument"]]
            values.append(ctypes.create_string_buffer(
                self.tensor_map(m, tensor.data_ptr(), nbytes), 128))
        pointers = (ctypes.c_void_p * len(values))(
            *[ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values])
        grid = -(-items // shape["itemsPerBlock"])
        if shape["blocksPerProcessor"]:
            grid = min(grid, blocks or shape["blocksPerProcessor"]
                       * torch.cuda.get_device_properties(0).multi_processor_count)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

        def launch(_keep=(values, pointers, arguments)):
            self.check(self.cu.cuLaunchKernel(
                d["function"], ctypes.c_uint(grid), 1, 1,
                ctypes.c_uint(shape["threads"]), 1, 1,
                ctypes.c_uint(shape["sharedBytes"]), stream, pointers, None), "launch")
        return launch


def prepare(group, kinds, trap=False):
    import torch
    torch.zeros(1, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    major, minor = torch.cuda.get_device_capability()
    architecture = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    nvrtc, driver = load_nvrtc(), Driver()
    texts = [group[k] for k in KINDS if k in group and k in kinds]
    with ThreadPoolExecutor(4) as pool:
        cubins = list(pool.map(
            lambda d: compile_text(nvrtc, d, architecture, trap), texts))
    for d, cubin in zip(texts, cubins):
        driver.load(cubin, d)
    return driver


# ------------------------------------------------------------------ one problem
class Problem:
    """Buffers of one micro-batch, with NaN behind the last row."""

    def __init__(self, d, lengths, amplitude=1.0, seed=0):
        import torch
        self.H, self.G, self.E = d["heads"], d["kvHeads"], d["headDim"]
        self.packed, self.window, self.scale = d["packed"], d["window"], d["scale"]
        self.rows = sum(lengths)
        assert self.rows % 128 == 0, self.rows
        generator = torch.Generator(device="cuda")
        generator.manual_seed(seed)
        firsts, row = [], 0
        for n in lengths:
            firsts += [row] * n
            row += n
        # behind the rows: a first row that nothing may look at
        self.segments = torch.tensor(firsts + [1 << 30] * MARGIN, dtype=torch.int32,
                                     device="cuda")
        H, G, E = self.H, self.G, self.E

        def random(columns, amplitude):
            x = torch.full((self.rows + MARGIN, columns), float("nan"), device="cuda",
                           dtype=torch.bfloat16)
            x[:self.rows] = (amplitude * torch.randn(
                self.rows, columns, device="cuda", generator=generator)).bfloat16()
            return x
        self.widths = [(H + 2 * G) * E] if self.packed else [H * E, G * E, G * E]
        self.inputs = [random(w, amplitude) for w in self.widths]
        self.do = random(H * E, 1.0)
        self.o = self.empty(H * E)
        self.lse, self.delta = self.empty(H, float32=True), self.empty(H, float32=True)
        self.grads = [self.empty(w) for w in self.widths]

    def empty(self, columns, float32=False):
        import torch
        return torch.full((self.rows + MARGIN, columns), float("nan"), device="cuda",
                          dtype=torch.float32 if float32 else torch.bfloat16)

    def parts(self, tensors):
        """[q, k, v] as rows x heads x E of the matrices"""
        H, G, E = self.H, self.G, self.E
        if self.packed:
            x = tensors[0][:self.rows]
            tensors = [x[:, :H * E], x[:, H * E:(H + G) * E], x[:, (H + G) * E:]]
        return [t[:self.rows].unflatten(-1, (-1, E)) for t in tensors]

    def bind(self, driver, d, blocks=0):
        def of(t):
            return (t, self.rows * t.stride(0) * t.element_size())
        qkv = [of(t) for t in self.inputs]
        segments = of(self.segments)
        back = [of(self.do), of(self.lse), of(self.delta), segments]
        grads = [of(t) for t in self.grads]
        kind, items = d["kind"], self.rows // 32 * self.H
        if kind == "forward":
            arguments = qkv + [segments, of(self.o), of(self.lse)]
        elif kind == "delta":
            arguments, items = [of(self.do), of(self.o), of(self.delta)], self.rows
        elif kind == "grad_q":
            arguments = qkv + back + grads[:1]
        else:
            arguments = qkv + back + (grads if self.packed else grads[1:]) + [self.rows]
            items = self.rows // 32 * self.G
        return driver.bind(d, arguments, items, blocks)

    def outputs(self, kind):
        """name -> (tensor, what it may write)"""
        if kind == "forward":
            return {"o": self.o[:self.rows], "lse": self.lse[:self.rows]}
        if kind == "delta":
            return {"delta": self.delta[:self.rows]}
        dq, dk, dv = self.parts(self.grads)
        return {"dq": dq} if kind == "grad_q" else {"dk": dk, "dv": dv}

    def reference(self):
        """float32, one head after the other"""
        import torch
        q, k, v = [x.float() for x in self.parts(self.inputs)]
        do = self.do[:self.rows].unflatten(-1, (-1, self.E)).float()
        row = torch.arange(self.rows, device="cuda")
        hidden = (row[None] > row[:, None]) | (row[None] < self.segments[:self.rows, None])
        if self.window:
            hidden |= row[:, None] - row[None] >= self.window
        r = {n: torch.empty_like(do) for n in ("o", "dq")}
        r["dk"], r["dv"] = torch.zeros_like(k), torch.zeros_like(v)
        r["lse"] = torch.empty(self.rows, self.H, device="cuda")
        r["delta"] = torch.empty_like(r["lse"])
        for h in range(self.H):
            g = h // (self.H // self.G)
            s = (q[:, h] @ k[:, g].T).mul_(self.scale).masked_fill_(hidden, -math.inf)
            r["lse"][:, h] = torch.logsumexp(s, -1)
            p = s.sub_(r["lse"][:, h, None]).exp_()
            r["o"][:, h] = p @ v[:, g]
            r["dv"][:, g] += p.T @ do[:, h]
            r["delta"][:, h] = (do[:, h] * r["o"][:, h]).sum(-1)
            ds = (do[:, h] @ v[:, g].T).sub_(r["delta"][:, h, None]).mul_(p)
            r["dq"][:, h] = ds @ k[:, g] * self.scale
            r["dk"][:, g] += ds.T @ q[:, h] * self.scale
            del s, p, ds
        return r


def errors(x, reference):
    """of all, of the worst row"""
    x, reference = x.float(), reference.float()
    x = x.reshape(reference.shape)
    difference = x - reference
    if not bool(difference.isfinite().all()):
        return math.inf, math.inf
    floor = 1e-3 * reference.numel() ** 0.5
    whole = (difference.norm() / max(reference.norm().item(), floor)).item()
    if reference.dim() < 3:
        reference, difference = reference[..., None], difference[..., None]
    norms = reference.norm(dim=-1)
    least = max(0.1 * norms.square().mean().sqrt().item(),
                1e-3 * reference.shape[-1] ** 0.5)
    return whole, (difference.norm(dim=-1) / norms.clamp(min=least)).max().item()


def where(x, reference):
    """the rows (by 64) and heads that are wrong, for a failed case"""
    difference = (x.reshape(reference.shape).float() - reference).nan_to_num(1e3)
    if difference.dim() < 3:
        difference = difference[..., None]
    by = difference.square().sum(-1)
    rows = [by[i:i + 64].sum().sqrt().item() for i in range(0, by.shape[0], 64)]
    heads = by.sum(0).sqrt().tolist()
    columns = difference.square().sum((0, 1)).sqrt().tolist()
    worst = sorted(range(len(rows)), key=lambda i: -rows[i])[:8]
    return {"worst blocks of 64 rows": {i: float(f"{rows[i]:.2g}") for i in worst},
            "heads": [float(f"{h:.2g}") for h in heads[:8]],
            "columns by 8": [float(f"{c:.2g}") for c in columns[::8]]}


def split(rows, count, seed):
    """random lengths of `count` segments"""
    import random
    cuts = sorted(random.Random(seed).sample(range(1, rows), count - 1))
    return [b - a for a, b in zip([0] + cuts, cuts + [rows])]


def cases(d, quick):
    """name, lengths, amplitude, blocks (0: as many as the GPU wants)"""
    yield "128 in one", [128], 1, 0
    yield "128 single rows", [1] * 128, 1, 0
    yield "256 ragged", [1, 126, 2, 63, 64], 1, 0
    yield "384 in one, 1 block", [384], 2, 1
    yield "640 at the edges", [63, 1, 64, 128, 127, 1, 129, 64, 63], 1, 3
    yield "1152 in two, 5 blocks", [700, 452], 1, 5
    yield "2176 in one", [2176], 1, 0
    yield "2176 in seven, 50 blocks", split(2176, 7, 1), 4, 50
    if quick:
        return
    yield "4 x 2048", [2048] * 4, 1, 0
    yield "16 x 512", [512] * 16, 1, 0
    yield "8192 in 300", split(8192, 300, 2), 1, 0
    yield "8192 with padding of single rows", [5000, 1, 2000, 1000] + [1] * 191, 1, 0
    yield "6144 in one", [6144], 2, 0


def check_group(name, group, kinds, arguments):
    import torch
    print("# compile", flush=True)
    driver = prepare(group, kinds, arguments.trap)
    texts = [group[k] for k in KINDS if k in group and k in kinds]
    for d in texts:
        slow = set(d["info"]["notes"]) & {"C7510", "C7512", "C7514", "C7515"}
        if d["family"] == "wgmma":
            slow |= {f"{n} bytes spilled" for n in d["info"]["spills"] if n}
        say(group=name, kernel=d["kind"], compile=d["info"], ok=not slow)
    for kind in [d["kind"] for d in texts]:
        d = group[kind]
        for title, lengths, amplitude, blocks in cases(d, arguments.quick):
            print(f"# {kind} {title}", flush=True)
            problem = Problem(d, lengths, amplitude)
            reference = problem.reference()
            if kind != "forward":
                problem.o[:problem.rows] = reference["o"].flatten(1).bfloat16()
            if kind == "delta":  # of the rounded o
                o = problem.o[:problem.rows].float().view_as(reference["o"])
                do = problem.do[:problem.rows].float().view_as(o)
                reference["delta"] = (o * do).sum(-1)
            if kind.startswith("grad"):
                problem.lse[:problem.rows] = reference["lse"]
                problem.delta[:problem.rows] = reference["delta"]
            launch = problem.bind(driver, d, blocks)
            launch()
            torch.cuda.synchronize()
            outputs = problem.outputs(kind)
            first = {n: x.clone() for n, x in outputs.items()}
            # whatever was not to be written is still NaN
            for x in outputs.values():
                x.fill_(math.nan)
            written = {"forward": [problem.o, problem.lse], "delta": [problem.delta],
                       }.get(kind, problem.grads)
            untouched = all(bool(t.isnan().all()) for t in written)
            same = True
            for _ in range(4):
                launch()
                torch.cuda.synchronize()
                same = same and all(
                    torch.equal(x.view(torch.int16 if x.element_size() == 2
                                       else torch.int32),
                                first[n].view(torch.int16 if x.element_size() == 2
                                              else torch.int32))
                    for n, x in outputs.items())
            found = {n: errors(x, reference[n]) for n, x in first.items()}
            good = all(e <= LIMITS.get(n, LIMIT)[0] and row <= LIMITS.get(n, LIMIT)[1]
                       for n, (e, row) in found.items())
            line = {"group": name, "kernel": kind, "case": title,
                    "ok": good and untouched and same, "untouched": untouched,
                    "repeatable": same}
            for n, (e, row) in found.items():
                line[n] = {"error": float(f"{e:.3g}"), "row": float(f"{row:.3g}")}
            if not good:
                line["where"] = {n: where(first[n], reference[n]) for n in found}
            say(**line)
            del problem, reference, launch, outputs, first
        torch.cuda.empty_cache()


# ------------------------------------------------------------------ timing
TIMED = ([2048] * 4, [512] * 16, [4096] * 2, [16384], "ragged")


def medians(launches, repeats=15, warm=3):
    """name -> milliseconds; the implementations in turn"""
    import torch
    for _ in range(warm):
        for f in launches.values():
            f()
    torch.cuda.synchronize()
    filler = torch.empty(1 << 28, device="cuda", dtype=torch.uint8)
    for _ in range(4):  # work ahead of the first launch
        filler.fill_(1)
    events = {n: [] for n in launches}
    for _ in range(repeats):
        for n, f in launches.items():
            begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
            begin.record()
            f()
            end.record()
            events[n].append((begin, end))
    torch.cuda.synchronize()
    return {n: sorted(a.elapsed_time(b) for a, b in e)[len(e) // 2]
            for n, e in events.items()}


def torch_attention(problem, lengths, backend):
    """forward and backward of torch for segments of one length"""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    kind = {"flash": SDPBackend.FLASH_ATTENTION,
            "cudnn": SDPBackend.CUDNN_ATTENTION}[backend]
    shape = (len(lengths), lengths[0])
    q, k, v = [x.contiguous().unflatten(0, shape).transpose(1, 2).detach().requires_grad_()
               for x in problem.parts(problem.inputs)]
    do = problem.do[:problem.rows].unflatten(-1, (-1, problem.E)).contiguous()
    do = do.unflatten(0, shape).transpose(1, 2)

    def forward():
        with sdpa_kernel(kind):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, enable_gqa=problem.H != problem.G)
    with torch.no_grad():
        forward()
    o = forward()

    def inference():
        with torch.no_grad():
            forward()

    def backward():
        torch.autograd.grad(o, (q, k, v), do, retain_graph=True)
    backward()
    return inference, backward


def time_shape(name, groups, lengths):
    """all families of one shape beside torch"""
    import torch
    label = "ragged" if lengths == "ragged" else f"{len(lengths)} x {lengths[0]}"
    given = split(8192, 12, 3) if lengths == "ragged" else lengths
    problem, forward, backward, part = None, {}, {}, {}
    for family, group in groups.items():
        print(f"# compile {name} {family}", flush=True)
        driver = prepare(group, KINDS)
        if problem is None:
            problem = Problem(next(iter(group.values())), given)
        bound = {k: problem.bind(driver, d) for k, d in group.items()}
        bound["forward"]()
        bound["delta"]()
        torch.cuda.synchronize()
        forward[family] = bound["forward"]

        def whole(b=bound):
            for k in ("delta", "grad_kv", "grad_q"):
                b[k]()
        backward[family] = whole
        for k in ("delta", "grad_kv", "grad_q"):
            part[f"{family} {k}"] = bound[k]
    print(f"# time {name} {label}", flush=True)
    if lengths != "ragged":
        for backend in ("flash", "cudnn"):
            try:
                f, b = torch_attention(problem, given, backend)
                forward["torch " + backend], backward["torch " + backend] = f, b
            except Exception as e:
                say(time=name, shape=label, note=f"torch {backend}: {str(e)[:120]}")
    flops = 4 * problem.H * problem.E * sum(n * n for n in given) / 2
    for n, ms in medians(forward).items():
        say(time="forward", group=name, shape=label, who=n, ms=round(ms, 4),
            tflops=round(flops / ms / 1e9))
    for n, ms in medians(backward | part).items():
        line = dict(time="backward", group=name, shape=label, who=n, ms=round(ms, 4))
        if n.endswith("delta"):
            nbytes = 2 * problem.rows * problem.H * problem.E * 2
            line["gb_per_s"] = round(nbytes / ms / 1e6)
        else:  # products done: 5 of a whole backward, 4 of dK and dV, 3 of dQ
            share = 4 / 5 if n.endswith("kv") else 3 / 5 if n.endswith("_q") else 1
            line["tflops"] = round(2.5 * flops * share / ms / 1e9)
        say(**line)


# ------------------------------------------------------------------ parent
def run_child(arguments, extra, limit):
    """Passes the lines of a child on. (finished, what it was at, failed cases, cases)"""
    command = [sys.executable, os.path.abspath(__file__), arguments.folder,
               "--only", arguments.only] + extra
    for flag in ("quick", "trap"):
        if getattr(arguments, flag):
            command.append("--" + flag)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, bufsize=1)
    state = {"at": "start", "heard": time.time(), "failed": 0, "cases": 0, "tail": []}

    def listen():
        for line in child.stdout:
            state["heard"] = time.time()
            if line.startswith("# "):
                state["at"] = line[2:].strip()
            elif line.startswith("{"):
                print(line, end="", flush=True)
                result = json.loads(line)
                if "ok" in result:
                    state["cases"] += 1
                    state["failed"] += not result["ok"]
            else:
                state["tail"] = (state["tail"] + [line.rstrip()])[-12:]
    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    while child.poll() is None:
        if time.time() - state["heard"] > limit:
            child.kill()
            child.wait()
            return False, state, f"no news for {limit} s"
        time.sleep(0.1)
    listener.join(5)
    if child.returncode:
        return False, state, f"exit status {child.returncode}"
    return True, state, ""


def check(arguments, groups):
    def one(name):
        kinds = [k for k in KINDS if k in groups[name]]
        failed = cases = 0
        while kinds:
            done, state, why = run_child(
                arguments, ["--child", name, "--kinds", ",".join(kinds)],
                arguments.limit)
            failed += state["failed"]
            cases += state["cases"]
            if done:
                break
            failed += 1
            say(group=name, ok=False, at=state["at"], why=why, output=state["tail"])
            kind = state["at"].split(" ")[0]
            kinds = kinds[kinds.index(kind) + 1:] if kind in kinds else []
        return failed, cases
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(one, groups))
    failed, done = sum(f for f, _ in results), sum(c for _, c in results)
    say(done=True, groups=len(groups), cases=done, failed=failed)
    return failed == 0 and done > 0


def timing_groups(groups):
    """families by shape, of texts that torch can be put beside"""
    shapes = {}
    for name, group in groups.items():
        d = next(iter(group.values()))
        if (not d["window"] and d["heads"] >= 16 and d["packed"]
                and all(k in group for k in KINDS)):
            shapes.setdefault(name.split("-", 1)[1], {})[d["family"]] = group
    return shapes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--trap", action="store_true")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--child")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--shape", type=int)
    arguments = parser.parse_args()
    groups = read_groups(arguments.folder, arguments.only)
    if not groups:
        raise SystemExit(f"no texts in {arguments.folder} match {arguments.only!r}")
    if arguments.child and arguments.shape is not None:
        time_shape(arguments.child, timing_groups(groups)[arguments.child],
                   TIMED[arguments.shape])
    elif arguments.child:
        check_group(arguments.child, groups[arguments.child],
                    arguments.kinds.split(","), arguments)
    elif arguments.time:
        for name in timing_groups(groups):
            for i in range(len(TIMED)):
                done, state, why = run_child(
                    arguments, ["--child", name, "--shape", str(i)], arguments.limit)
                if not done:
                    say(time=name, shape=i, at=state["at"], why=why,
                        output=state["tail"])
    elif not check(arguments, groups):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
