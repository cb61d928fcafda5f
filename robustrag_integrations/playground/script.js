"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const TAGS = new Set("section div details summary h1 h3 h4 p span b i pre ul ol li dl dt dd table caption thead tbody tr th td".split(" "));
  const ATTRIBUTES = new Set("role dir title scope colspan tabindex aria-label aria-hidden".split(" "));
  const FIELDS = ["question", "answer", "target"];
  const PAUSE = 500; // milliseconds without a change before the models are asked

  let controls, state, report = null;
  let asking = null; // what is under way: an AbortController
  let timer = 0;

  /** An element from `[tag, class, attributes, ...children]` or a text. Nothing becomes markup. */
  const build = (node) => {
    if (typeof node === "string") return document.createTextNode(node);
    const [tag, name, given, ...children] = node;
    if (!TAGS.has(tag)) throw new Error(`no such element: ${tag}`);
    const made = document.createElement(tag);
    if (name) made.setAttribute("class", name);
    for (const [key, value] of Object.entries(given || {})) if (ATTRIBUTES.has(key)) made.setAttribute(key, value);
    made.append(...children.map(build));
    return made;
  };

  /** Hidden and direction-changing characters made visible, as the server does it for what it draws. */
  const visible = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (c) =>
    "\n\t\u200c\u200d".includes(c) ? c : `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

  const make = (tag, given = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(given)) key in made ? (made[key] = value) : made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  const say = (text) => { $("status").textContent = text; };
  const complain = (text) => {
    $("problem").hidden = !text;
    $("problem").textContent = text ? visible(text).slice(0, 1000) : "";
  };

  // ---- asking

  /** Post, and hand on each event. Throws what the server says is wrong. */
  const post = async (path, body, onEvent, signal) => {
    const reply = await fetch(path, {
      method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    if (!reply.ok) throw new Error((await reply.json()).error.message);
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const data = event.slice("data: ".length);
        if (data === "[DONE]") return;
        const found = JSON.parse(data);
        if (found.error) throw new Error(found.error.message);
        onEvent(found);
      }
    }
  };

  /** Do one thing at a time: what was under way is cancelled, on the server as well. */
  const work = async (says, path, body, onEvent, done = "") => {
    asking?.abort();
    const mine = asking = new AbortController();
    complain("");
    say(says);
    $("stop").hidden = false;
    document.body.classList.add("busy");
    try {
      await post(path, body, (event) => { if (asking === mine) onEvent(event); }, mine.signal);
      if (asking === mine) say(typeof done === "function" ? done() : done);
    } catch (error) {
      if (asking !== mine || error.name === "AbortError") return;
      say("");
      complain(error instanceof TypeError ? "The playground does not answer; is it still running?" : error.message);
    } finally {
      if (asking === mine) {
        asking = null;
        $("stop").hidden = true;
        document.body.classList.remove("busy");
      }
    }
  };

  const stop = (says) => {
    clearTimeout(timer);
    asking?.abort();
    asking = null;
    $("stop").hidden = true;
    document.body.classList.remove("busy");
    if (says) say(says);
  };

  /** Something has changed: what was computed is no longer about what is shown. */
  const changed = () => {
    stop();
    complain("");
    report = null;
    $("save").disabled = true;
    $("certificate").replaceChildren();
    document.querySelectorAll(".panel").forEach((panel) => panel.classList.add("stale"));
    tellWho(null);
    if (!state.rows.length) say("Write a question, and press Find passages.");
    else if ($("live").checked) timer = setTimeout(ask, PAUSE);
    else say("Press Ask for answers to what is on the page.");
  };

  /** Say at its heading which shelf decided the answer. */
  const tellWho = (decided) => {
    const shelf = { trusted: "trusted", votes: "others", sole_source: "others" }[decided];
    for (const name of ["trusted", "others"]) $(name).querySelector(".decided").hidden = name !== shelf;
  };

  const ask = () => {
    clearTimeout(timer);
    return work("Asking the model …", "answer", { state }, show, "Done.");
  };

  const show = (event) => {
    const panel = $(event.part);
    panel.classList.remove("stale");
    panel.dataset.kind = event.verdict.kind;
    const [said, verdict, radius] = ["said", "verdict-line", "radius-line"].map((name) => panel.querySelector(`.${name}`));
    const text = visible(event.text);
    said.textContent = text.length > 600 ? `${text.slice(0, 600)}…` : text || "(nothing)";
    verdict.textContent = event.verdict.words;
    const score = $(`score-${event.part}`);
    score.textContent = `${event.part === "vanilla" ? "Vanilla" : "Defended"}: ${text.slice(0, 40)}`;
    score.dataset.kind = event.verdict.kind;
    const certified = event.part === "defended" && method().certified;
    radius.textContent = event.decided_by === "trusted"
      ? "Decided by what you trust: no other source can change it"
      : certified
      ? `Radius ${event.radius}: ${event.radius ? `any ${event.radius} of ${event.sources} sources may say anything else` : "one source may have decided"}`
      : "Radius 0: any passage may decide";
    $(`${event.part}-evidence`).replaceChildren(build(event.evidence));
    if (event.part === "vanilla") say("Vanilla has answered; asking about each source alone …");
    if (event.part === "defended") tellWho(event.decided_by);
    if (event.report) {
      report = event.report;
      $("save").disabled = false;
    }
  };

  const certify = () => work(
    "Certifying …", "certificate",
    { state, corruption_size: Number($("corruption_size").value), attack: $("attack_mode").value },
    (event) => $("certificate").replaceChildren(build(event.evidence)), "Certified what can be.",
  );

  // ---- the form

  const method = () => controls.methods.find((one) => one.name === state.method);

  const option = (value, words = value) => make("option", { value, textContent: words });

  const fill = () => {
    for (const name of FIELDS) $(name).value = state[name];
    $("choices").value = state.choices.join("\n");
    $("options").open = state.choices.length > 0;
    $("top_k").value = state.top_k;
    if (!controls.models.some((one) => one.name === state.model)) state.model = controls.models[0].name;
    for (const name of ["method", "model", "group_by"]) $(name).value = state[name];
    fillMethod();
    fillRows();
  };

  const fillMethod = () => {
    const chosen = method();
    $("summary").textContent = chosen.summary;
    $("certify").disabled = !chosen.certified;
    $("group_by").disabled = !chosen.certified;
    $("task-field").hidden = chosen.tasks.length < 2;
    $("task").replaceChildren(...chosen.tasks.map((name) => option(name, name.replaceAll("_", " "))));
    $("task").value = chosen.tasks.includes(state.task) ? state.task : chosen.tasks[0] ?? "";
    const value = (setting) => state.settings[setting.name] ?? setting.default;
    $("settings").replaceChildren(...chosen.settings.map((setting) => {
      const input = setting.values.length
        ? make("select", {}, ...setting.values.map((one) => option(one)))
        : make("input", { type: "number", step: setting.whole ? "1" : "any", placeholder: "default" });
      input.value = value(setting) ?? "";
      input.addEventListener("change", () => {
        if (input.value === "" || input.value === String(setting.default)) delete state.settings[setting.name];
        else state.settings[setting.name] = setting.values.length ? input.value : Number(input.value);
        changed();
      });
      input.dataset.name = setting.name;
      return make("label", { className: "field" },
        make("span", { textContent: setting.name.replaceAll("_", " ") }), input,
        make("small", { textContent: setting.meaning }));
    }));
  };

  /** The rows are those of the trusted shelf, then the others. */
  const shelfOf = (passage) => state.rows.filter((one) => Boolean(one.trusted) === Boolean(passage.trusted));

  const move = (passage, rank) => {
    const shelf = shelfOf(passage), from = shelf.indexOf(passage);
    const to = Math.max(0, Math.min(shelf.length - 1, rank - 1));
    const start = state.rows.indexOf(shelf[0]);
    state.rows.splice(start + to, 0, ...state.rows.splice(start + from, 1));
    fillRows(passage, ".rank-input");
    if (from !== to) {
      changed();
      say(`Moved to rank ${to + 1} of ${shelf.length}.`);
    }
  };

  /** Show the rows, with the focus on what this selects in the row of a passage. */
  const fillRows = (passage, focus) => {
    state.rows = [...state.rows.filter((one) => one.trusted), ...state.rows.filter((one) => !one.trusted)];
    const made = state.rows.map(rowOf);
    for (const name of ["trusted", "others"])
      $(name).replaceChildren($(name).rows[0], ...made.filter((_, at) => Boolean(state.rows[at].trusted) === (name === "trusted")));
    $("add").disabled = state.rows.length >= controls.bounds.passages;
    if (focus) (made[state.rows.indexOf(passage)]?.querySelector(focus) ?? $("add")).focus();
  };

  const rowOf = (passage, at) => {
    const number = at + 1, shelf = shelfOf(passage), place = shelf.indexOf(passage) + 1;
    const left = !passage.trusted && place > state.top_k;
    const rank = make("input", { type: "number", className: "rank-input", min: "1", max: String(shelf.length), value: String(place), "aria-label": `Rank of passage ${number}` });
    const text = make("textarea", { rows: 3, value: passage.text ?? "", dir: "auto", maxLength: controls.bounds.passage, "aria-label": `Text of passage ${number}` });
    const source = make("input", { value: passage.source ?? "", dir: "auto", maxLength: controls.bounds.name, placeholder: "its own", "aria-label": `Source of passage ${number}` });
    const planted = make("input", { type: "checkbox", checked: Boolean(passage.planted), "aria-label": `Passage ${number} is planted` });
    const trust = make("button", { type: "button", className: "trust", textContent: passage.trusted ? "Do not trust" : "Trust", "aria-label": `${passage.trusted ? "Do not trust" : "Trust"} passage ${number}` });
    const remove = make("button", { type: "button", className: "remove", textContent: "Remove", "aria-label": `Remove passage ${number}` });
    const row = make("tr", { className: `${passage.planted ? "planted-row" : ""}${left ? " left" : ""}` },
      make("td", { className: "rank-cell" }, rank),
      make("td", { className: "text-cell" }, text),
      make("td", { className: "source-cell" }, source,
        make("label", { className: "inline" }, planted, make("span", { textContent: "planted" })), trust, remove,
        ...(left ? [make("small", { textContent: "not read" })] : [])));
    rank.addEventListener("change", () => move(passage, Number(rank.value)));
    text.addEventListener("input", () => { passage.text = text.value; changed(); });
    source.addEventListener("input", () => { passage.source = source.value; changed(); });
    trust.addEventListener("click", () => {
      passage.trusted = !passage.trusted;
      fillRows(passage, ".trust");
      changed();
    });
    planted.addEventListener("change", () => {
      passage.planted = planted.checked;
      fillRows(passage, "[type=checkbox]");
      changed();
    });
    remove.addEventListener("click", () => {
      state.rows.splice(at, 1);
      fillRows(state.rows[Math.min(at, state.rows.length - 1)], ".remove");
      changed();
    });
    return row;
  };

  const replaceState = (event) => {
    state = event.state;
    fillRows();
    setTimeout(changed);
  };

  const find = () => work("Searching …", "search", { state }, replaceState);

  const plant = (name) => work(`Planting ${name} …`, "poison",
    { state, attack: name, rank: Math.max(1, Math.trunc(Number($("rank").value)) || 1) }, replaceState);

  // ---- start

  const listen = () => {
    for (const name of FIELDS) {
      $(name).maxLength = name === "question" ? controls.bounds.question : controls.bounds.name;
      $(name).addEventListener("input", () => { state[name] = $(name).value; changed(); });
    }
    $("choices").addEventListener("input", () => {
      state.choices = $("choices").value.split("\n").map((one) => one.trim()).filter(Boolean);
      changed();
    });
    $("top_k").addEventListener("change", () => {
      state.top_k = Math.max(1, Math.min(controls.bounds.passages, Math.trunc(Number($("top_k").value)) || 1));
      $("top_k").value = state.top_k;
      fillRows();
      changed();
    });
    $("method").addEventListener("change", () => {
      Object.assign(state, { method: $("method").value, settings: {}, task: null });
      fillMethod();
      changed();
    });
    for (const name of ["model", "group_by", "task"]) $(name).addEventListener("change", () => { state[name] = $(name).value; changed(); });
    $("add").addEventListener("click", () => {
      const fresh = { text: "" };
      state.rows.unshift(fresh);
      fillRows(fresh, "textarea");
      changed();
    });
    $("clear").addEventListener("click", () => {
      state.rows = state.rows.filter((one) => !one.planted);
      fillRows();
      changed();
    });
    $("find").addEventListener("click", find);
    $("ask").addEventListener("click", ask);
    $("live").addEventListener("change", () => { if ($("live").checked) changed(); });
    $("stop").addEventListener("click", () => stop("Stopped."));
    $("certify").addEventListener("click", certify);
    $("reset").addEventListener("click", () => { state = structuredClone(controls.start); fill(); changed(); });
    $("save").addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([JSON.stringify(report, null, 2)], { type: "application/json" }));
      make("a", { href: address, download: "robustrag-ask.json" }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
    for (const name of ["skip", "score"]) $(name).addEventListener("click", () => {
      $("results").focus({ preventScroll: true });
      $("results").scrollIntoView();
    });
    $("inputs").addEventListener("submit", (event) => event.preventDefault());
  };

  const begin = async () => {
    controls = await (await fetch("controls")).json();
    $("method").append(...controls.methods.map((one) => option(one.name)));
    $("model").append(...controls.models.map((one) => option(one.name)));
    $("group_by").append(...controls.groupings.map((one) => option(one)));
    $("attack_mode").append(...controls.modes.map((one) => option(one)));
    $("corruption_size").max = controls.bounds.corrupted;
    $("attacks").append(...controls.attacks.map((one) => {
      const button = make("button", { type: "button", textContent: one.name, title: one.summary, "aria-label": `Plant ${one.name}: ${one.summary}` });
      button.addEventListener("click", () => plant(one.name));
      return button;
    }));
    // A page that is opened must not spend money by itself.
    $("live").checked = controls.models.every((one) => one.local);
    state = structuredClone(controls.start);
    fill();
    listen();
    changed();
  };

  begin().catch(() => complain("The playground does not answer; is it still running?"));
})();
