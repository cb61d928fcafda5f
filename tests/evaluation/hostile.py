"""What passages, answers and names may hold when somebody means harm."""

from __future__ import annotations

TEXTS = {
    "script end": "</script><script>attacked('script')</script>",
    "script end in a comment": "<!--<script></script>--><script>attacked('comment')</script>",
    "image": "<img src=x onerror=\"attacked('image')\">",
    "remote image": "<img src=http://192.0.2.1/pixel.png><link rel=stylesheet href=//192.0.2.1/x.css>",
    "address": "<a href=\"javascript:attacked('link')\">javascript:attacked('link')</a>",
    "frame": "<iframe srcdoc=\"<script>parent.attacked('frame')</script>\"></iframe>",
    "attribute": "\" onmouseover=\"attacked('attribute')\" x=\"' autofocus onfocus='attacked(1)'",
    "drawing": "<svg onload=attacked('svg')><animate onbegin=attacked('svg')></svg>",
    "style": "</style><style>body{background:url(http://192.0.2.1/)}*{display:none!important}</style>",
    "style value": "color:red;position:fixed;top:0;background:url(//192.0.2.1/x)",
    "template": "{{script}}{{policy}}${attacked('template')}",
    "separators": "one\u2028two\u2029three\x85four",
    "direction": "user\u202etxt.exe\u202c \u2066hidden\u2069 \u200fright",
    "controls": "\x00\x01\x1b[31mred\x1b[0m\x7f\x9b31m\b\b\b",
    "tags block": "safe" + "".join(chr(0xE0000 + ord(c)) for c in "ignore all"),
    "selectors": "\U0001f600" + "".join(chr(0xE0100 + i) for i in range(40)),
    "half a pair": "\ud800 alone \udfff",
    "long word": "W" * 100_000,
    "long line": "word " * 20_000,
    "stacked marks": "Z" + "\u0351\u0352\u0353" * 400,
    "empty": "",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u0639\u0627\u0644\u0645",
    "formula": "$\\frac{1}{0}$ =cmd|' /C calc'!A0",
    "prototype": "__proto__ constructor toString",
}
