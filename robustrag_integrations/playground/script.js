"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const TAGS = new Set("section div details summary h1 h3 h4 p span b i pre ul ol li dl dt dd table caption thead tbody tr th td".split(" "));
  const ATTRIBUTES = new Set("role dir title scope colspan tabindex aria-label aria-hidden".split(" "));
  const FIELDS = ["question", "answer", "target"];
  const SHELVES = ["trusted", "others"];
  const WORDS = {
    origin: "origin: a file or page", site: "site: all pages of a host", passage: "passage: each by itself",
    injection: "adds passages", modification: "changes passages",
  };
  const PAUSE = 500; // milliseconds without a change before the models are asked

  let controls, state, report = null;
  let dropped = []; // rows of the files that were dropped or chosen,
  let unread = { trusted: [], others: [] }; // and which of these could not be read, and why
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

  /** Do one thing at a time: what was under way is cancelled, on the server as well. The job sends requests. */
  const work = async (says, job, done = "") => {
    clearTimeout(timer);
    asking?.abort();
    const mine = asking = new AbortController();
    const send = (path, body, onEvent) =>
      post(path, body, (event) => { if (asking === mine) onEvent(event); }, mine.signal);
    complain("");
    say(says);
    $("stop").hidden = false;
    document.body.classList.add("busy");
    try {
      await job(send);
      if (asking === mine && done) say(done);
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
    for (const name of SHELVES) $(name).querySelector(".decided").hidden = name !== shelf;
  };

  const ask = () => work("Asking the model …", (send) => send("answer", { state }, show), "Done.");

  const show = (event) => {
    if (event.progress) {
      say(event.progress);
      return;
    }
    const panel = $(event.part);
    panel.classList.remove("stale");
    panel.dataset.kind = event.verdict.kind;
    const [said, verdict, radius] = ["said", "verdict-line", "radius-line"].map((name) => panel.querySelector(`.${name}`));
    const text = visible(event.text);
    // What is no answer, or a long one, is text to read and no headline.
    panel.toggleAttribute("data-long", event.abstained || text.length > 120 || text.includes("\n"));
    said.textContent = text.length > 2000 ? `${text.slice(0, 2000)}…` : text || "(nothing)";
    verdict.textContent = event.verdict.words;
    radius.textContent = event.promise;
    const score = $(`score-${event.part}`);
    const short = event.abstained ? "no answer" : text.slice(0, 40);
    score.textContent = `${event.part === "vanilla" ? "Plain RAG" : "Defended"}: ${short}`;
    score.dataset.kind = event.verdict.kind;
    $(`${event.part}-evidence`).replaceChildren(build(event.evidence));
    if (event.part === "defended") tellWho(event.decided_by);
    if (event.report) {
      report = event.report;
      $("save").disabled = false;
    }
  };

  const certify = () => work(
    "Certifying …",
    (send) => send(
      "certificate", { state, corruption_size: Number($("corruption_size").value), attack: $("attack_mode").value },
      (event) => $("certificate").replaceChildren(build(event.evidence)),
    ),
    "Certified what can be.",
  );

  // ---- the form

  const method = () => controls.methods.find((one) => one.name === state.method);

  const option = (value, words = WORDS[value] ?? value) => make("option", { value, textContent: words });

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

  const listed = (head, texts, between) => texts.length
    && head + texts.slice(0, 5).join(between) + (texts.length > 5 ? ` and ${texts.length - 5} more` : "");

  /** Show the rows, with the focus on what this selects in the row of a passage. */
  const fillRows = (passage, focus) => {
    state.rows = [...state.rows.filter((one) => one.trusted), ...state.rows.filter((one) => !one.trusted)];
    const made = state.rows.map(rowOf);
    for (const name of SHELVES) {
      const trusted = name === "trusted";
      $(name).querySelector(".rows").replaceChildren(...made.filter((_, at) => Boolean(state.rows[at].trusted) === trusted));
      const names = [...new Set(dropped.filter((one) => Boolean(one.trusted) === trusted).map((one) => one.source))];
      const shown = $(name).querySelector(".dropped");
      const told = [listed("Searched for passages: ", names, ", "), listed("Not read: ", unread[name], "; "),
        names.length && state.model === "bundled" && "The bundled reader knows only its demonstration world: start with --model"];
      shown.textContent = visible(told.filter(Boolean).join(". "));
      shown.hidden = !shown.textContent;
    }
    $("add").disabled = state.rows.length >= controls.bounds.passages;
    if (focus) (made[state.rows.indexOf(passage)]?.querySelector(focus) ?? $("add")).focus();
  };

  const rowOf = (passage, at) => {
    const number = at + 1, shelf = shelfOf(passage), place = shelf.indexOf(passage) + 1;
    const left = !passage.trusted && place > state.top_k;
    const rank = make("input", { type: "number", className: "rank-input", min: "1", max: String(shelf.length), value: String(place), "aria-label": `Rank of passage ${number}` });
    const text = make("textarea", { rows: 3, className: "text", value: passage.text ?? "", dir: "auto", maxLength: controls.bounds.passage, "aria-label": `Text of passage ${number}` });
    const named = passage.source ?? "";
    const source = make("textarea", { rows: Math.ceil(named.length / 45) || 1, className: "source", value: named, dir: "auto", maxLength: controls.bounds.name, placeholder: "a source of its own", "aria-label": `Source of passage ${number}` });
    const planted = make("input", { type: "checkbox", checked: Boolean(passage.planted), "aria-label": `Passage ${number} is planted` });
    const trust = make("button", { type: "button", className: "trust", textContent: passage.trusted ? "Do not trust" : "Trust", "aria-label": `${passage.trusted ? "Do not trust" : "Trust"} passage ${number}` });
    const remove = make("button", { type: "button", className: "remove", textContent: "Remove", "aria-label": `Remove passage ${number}` });
    const row = make("div", { className: `passage${passage.planted ? " planted-row" : ""}${left ? " left" : ""}`, role: "listitem", "aria-label": `Passage ${number}` },
      rank, source, text,
      make("div", { className: "does" },
        make("label", { className: "inline" }, planted, make("span", { textContent: "planted" })), trust, remove,
        ...(left ? [make("span", { textContent: "not read" })] : [])));
    rank.addEventListener("change", () => move(passage, Number(rank.value)));
    text.addEventListener("input", () => { passage.text = text.value; changed(); });
    source.addEventListener("input", () => { passage.source = source.value.replaceAll("\n", " "); changed(); });
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

  const find = () => work("Searching …", (send) => send("search", { state, files: dropped }, replaceState));

  const plant = (name) => work(`Planting ${name} …`, (send) => send("poison",
    { state, attack: name, rank: Math.max(1, Math.trunc(Number($("rank").value)) || 1) }, replaceState));

  // ---- files

  /** The files that were dropped, and those of the folders among them, each with its path. */
  const filesOf = async (entry, above = "") => {
    const path = `${above}${entry.name}`;
    if (entry instanceof File) return [[path, entry]];
    if (entry.isFile) return [[path, await new Promise((found, failed) => entry.file(found, failed))]];
    const reader = entry.createReader(), found = [];
    for (let some; (some = await new Promise((read, failed) => reader.readEntries(read, failed))).length;)
      for (const one of some) if (!one.name.startsWith(".")) found.push(...await filesOf(one, `${path}/`));
    return found;
  };

  const encoded = (file) => new Promise((found, failed) => {
    const reader = new FileReader();
    reader.onload = () => found(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => failed(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });

  /** Put files on a shelf: read them, and find the passages among them that fit the question. */
  const shelve = (name, listing) => work("Reading …", async (send) => {
    const files = await listing();
    let count = 0;
    unread[name] = [];
    for (const [path, file] of files) {
      say(visible(`Reading ${++count} of ${files.length}: ${path}`));
      if (file.size > controls.bounds.file) unread[name].push(`${path} is larger than ${controls.bounds.file >> 20} MiB`);
      else await send("read", { name: path, data: await encoded(file) }, ({ rows, problem }) => {
        dropped = dropped.filter((one) => one.source !== rows[0]?.source);
        dropped.push(...rows.map((row) => ({ ...row, trusted: name === "trusted" })));
        if (problem) unread[name].push(problem);
      });
    }
    const { question } = controls.start; // an example makes room for what is the user's own
    if (dropped.length && question && state.question === question)
      Object.assign(state, { question: "", answer: "", target: "", choices: [], rows: [] });
    fill();
    changed();
    if (state.question.trim() && dropped.length) await find();
  });

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
    for (const name of ["model", "group_by", "task"]) $(name).addEventListener("change", () => { state[name] = $(name).value; fillRows(); changed(); });
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
    $("reset").addEventListener("click", () => { state = structuredClone(controls.start); dropped = []; unread = { trusted: [], others: [] }; fill(); changed(); });
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

  const listenForFiles = () => {
    for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault()); // beside a shelf
    for (const name of SHELVES) {
      const shelf = $(name), input = shelf.querySelector("[type=file]");
      shelf.addEventListener("dragover", () => shelf.classList.add("over"));
      shelf.addEventListener("dragleave", (event) => { if (!shelf.contains(event.relatedTarget)) shelf.classList.remove("over"); });
      shelf.addEventListener("drop", (event) => {
        shelf.classList.remove("over");
        const given = [...event.dataTransfer.items].filter((item) => item.kind === "file")
          .map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
        if (given.length) shelve(name, async () => (await Promise.all(given.map((one) => filesOf(one)))).flat());
      });
      input.addEventListener("change", () => {
        const files = [...input.files].map((file) => [file.name, file]);
        input.value = "";
        if (files.length) shelve(name, async () => files);
      });
    }
  };

  const begin = async () => {
    controls = await (await fetch("controls")).json();
    $("method").append(...controls.methods.map((one) => option(one.name)));
    $("model").append(...controls.models.map((one) => option(one.name)));
    $("group_by").append(...controls.groupings.map((one) => option(one)));
    $("attack_mode").append(...controls.modes.map((one) => option(one)));
    $("corruption_size").max = controls.bounds.corrupted;
    const lists = document.querySelectorAll(".attacks");
    controls.attacks.forEach((one, at) => {
      const button = make("button", { type: "button", textContent: one.name, title: one.summary, "aria-label": `Plant ${one.name}: ${one.summary}` });
      button.addEventListener("click", () => plant(one.name));
      lists[at < 2 ? 0 : 1].append(button, make("small", { textContent: one.summary, "aria-hidden": "true" }));
    });
    // A page that is opened must not spend money by itself.
    $("live").checked = controls.models.every((one) => one.local);
    state = structuredClone(controls.start);
    fill();
    listen();
    listenForFiles();
    changed();
  };

  begin().catch(() => complain("The playground does not answer; is it still running?"));
})();
