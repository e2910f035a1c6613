"""Tasks of newcomers to the site, and how each of them finds the answer.

The questions and the words of the search were written before the answers were looked for.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A question, two ways to its answer, and a text of the answer."""

    question: str
    clicks: tuple[str, ...]  # the texts of links, from the front page on
    words: str  # typed into the search
    found: tuple[str, ...]  # the texts of links: a result of the search first
    answer: str


SPEC, FORMATS, GLOSSARY = "The specification", "Small formats, code by code", "Glossary"
TITLE = "Find out which bit of your FP8, MX or NVFP4 kernel is wrong, and why"
EXPERIMENT = "The paper\N{RIGHT SINGLE QUOTATION MARK}s experiment, on small models"

HARDWARE = (
    Task(
        "My unit rounds binary32 to E4M3: which code has 464?",
        (SPEC, "ENC-006 Overflow, and saturation"),
        "e4m3 overflow",
        ("Encoding", "ENC-006 Overflow, and saturation"),
        "464 does not overflow e4m3",
    ),
    Task(
        "Which codes of E5M2 are infinities and NaN?",
        (SPEC, "Special codes"),
        "e5m2 infinity",
        ("Formats", "Special codes"),
        "0x7C, 0xFC",
    ),
    Task(
        "How do I load the vectors in a bench in Verilog?",
        ("Verilog",),
        "readmemh",
        ("Verify a design in Verilog",),
        "mor-ref golden export --to readmemh",
    ),
    Task(
        "Does the exponent of a scale need a divider?",
        (SPEC, "THM-004 The exponent needs no divider"),
        "divider",
        ("Glossary: divider", "THM-004"),
        "The exponent of the ideal scale of an amax a is",
    ),
    Task(
        "How many bits must the accumulator of errors have?",
        (SPEC, "ERR-005 The largest unit"),
        "accumulator",
        ("Glossary: accumulator of errors",),
        "unsigned integers of 64 bits",
    ),
    Task(
        "May my unit flush denormals to zero?",
        (GLOSSARY, "Words of others"),
        "denormal",
        ("Glossary: denormal",),
        "It is never flushed",
    ),
    Task(
        "Which FP4 element of a pair lies in the low nibble?",
        ("Layouts",),
        "nibble",
        ("Layouts",),
        "the even one in the low nibble",
    ),
    Task(
        "How do the random bits enter stochastic rounding?",
        (SPEC, "ENC-005 Stochastic rounding"),
        "stochastic rounding",
        ("Encoding > ENC-005 Stochastic rounding",),
        "The caller MUST also give a word r for each element",
    ),
    Task(
        "How does a simulator that reads lines take cases without end?",
        ("Make larger suites", "Without end"),
        "simulator",
        ("Verify a design in Verilog", "Make larger suites", "Without end"),
        "A device that reads and writes lines can take test cases without end",
    ),
    Task(
        "Is there a model in C that a simulator can call by DPI?",
        ("Use the C library",),
        "DPI",
        ("Glossary: DPI", "library in C"),
        "mor_ref_dpi.sv",
    ),
)
CUDA = (
    Task(
        "My FP8 kernel gives some wrong bits. Which, and why?",
        ("Verify my kernel",),
        "wrong bits",
        (TITLE, "Verify my kernel"),
        "your kernel is in",
    ),
    Task(
        "How do I verify a Triton kernel?",
        ("Triton",),
        "triton",
        ("Verify a Triton kernel",),
        "mor-ref verify kernel:run --suite quantize_blocks",
    ),
    Task(
        "My kernel writes 0x7E for a NaN. What is expected?",
        (SPEC, "FMT-011 The canonical NaN code"),
        "NaN code",
        ("Formats > FMT-011 The canonical NaN code",),
        "0x7F for e4m3 and e5m2",
    ),
    Task(
        "Does the report name fast math as the cause?",
        (GLOSSARY, "Words of others"),
        "fast math",
        ("Glossary: fast math",),
        "SCL-002/quotient-by-truncated-reciprocal",
    ),
    Task(
        "Which codes does the instruction cvt.rn.satfinite give?",
        (SPEC, "ENC-016 Profiles"),
        "cvt.rn.satfinite",
        ("Glossary: cvt.rn.satfinite",),
        "cuda",
    ),
    Task(
        "In which order do tensor cores read swizzled scales?",
        ("Layouts",),
        "swizzle",
        ("Layouts",),
        "scales in tiles of 128x4",
    ),
    Task(
        "Which version of Transformer Engine does NVFP4 follow?",
        (SPEC, "NVF-002 The profiles"),
        "transformer engine",
        ("NVFP4 > NVF-003 The global scale of Transformer Engine", "NVF-002 The profiles"),
        "te since 2.14",
    ),
    Task(
        "Does the order of atomicAdd change the sums?",
        (SPEC, "9. Error sums"),
        "atomicAdd",
        ("Glossary: atomicAdd",),
        "in any order",
    ),
    Task(
        "How do I check my kernel on tensors of my own model?",
        ("Verify on your own tensors",),
        "own tensors",
        ("Verify on your own tensors",),
        "runs a candidate on the tensors of a file",
    ),
    Task(
        "How do I put this into my tests with pytest?",
        ("Test a kernel with pytest",),
        "pytest",
        ("Test a kernel with pytest",),
        "plugin",
    ),
)
RESEARCH = (
    Task(
        "What is MoR?",
        ("MoR on one page",),
        "mixture of representations",
        ("MoR on one page",),
        "MoR quantizes a tensor, measures the loss, and decides",
    ),
    Task(
        "What is compared with the threshold of 4.5 %?",
        ("MoR on one page", "The paper and this reference"),
        "threshold",
        ("Acceptance and policies", "MOR-002 mean_relative_error"),
        "T = 377487",
    ),
    Task(
        "What is GAM scaling?",
        ("MoR on one page",),
        "GAM",
        ("Glossary: GAM",),
        "blocks of a group share",
    ),
    Task(
        "How do I see in Python which format each block takes?",
        ("Encode and quantize in Python", "MoR, NVFP4 and MX"),
        "python quantize",
        ("Encode and quantize in Python", "MoR, NVFP4 and MX"),
        "decides which representation each unit of a tensor takes",
    ),
    Task(
        "Where does this differ from the paper?",
        ("MoR on one page", "The paper and this reference"),
        "paper",
        ("MoR on one page", "The paper and this reference"),
        "it leaves open",
    ),
    Task(
        "How do I train a model of torch with fake quantization?",
        ("Train a model under a recipe",),
        "fake quantization",
        ("Glossary: fake quantization", "training"),
        'convert(model, "mor_tensor")',
    ),
    Task(
        "How much of my checkpoint would be FP8?",
        ("Analyze a checkpoint with MoR",),
        "checkpoint",
        ("Analyze a checkpoint with MoR",),
        "mor-ref analyze",
    ),
    Task(
        "How do NVFP4 and MXFP4 differ in block size and scale factor?",
        (FORMATS, "Formats with scales"),
        "MXFP4",
        ("Glossary: MXFP4", "Formats with scales"),
        "MXFP4 and NVFP4 have the same elements",
    ),
    Task(
        "How do I add a number format of my own?",
        ("Your own format, policy, metric and representation",),
        "custom format",
        ("Glossary: custom format", "a format of your own"),
        "Every function takes it in place of a name",
    ),
    Task(
        "Does training converge: what are the losses?",
        (EXPERIMENT,),
        "loss",
        (EXPERIMENT,),
        "within 0.5 %",
    ),
)
ROLES = {"hardware": HARDWARE, "CUDA": CUDA, "research": RESEARCH}
CLICKS = 3
