// Plays what docs/site/travel.py computed from a plan: each hop is one packet on one link for one unit of time.
(() => {
  const box = document.getElementById("travel");
  if (!box) return;
  const data = JSON.parse(document.getElementById("travel-data").textContent);
  const COLOURS = ["#b5402f", "#2f7d4f", "#7a4fa3", "#a8641a", "#1f6f8b", "#8b1f5c", "#5c6b1f", "#444c9c"];
  const UNITS_PER_S = 2;
  const NS = "http://www.w3.org/2000/svg";
  const shape = (name, attributes, parent) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return parent.appendChild(made);
  };
  const found = (name) => box.querySelector(name);
  const drawing = found("svg"), said = found(".said"), play = found(".play"), at = found(".at");
  let scheme = data.schemes[0], time = 0, playing = false, before = 0;

  drawing.setAttribute("viewBox", data.extent.join(" "));
  for (const [from, to] of data.links) {
    const [x1, y1] = data.nodes[from], [x2, y2] = data.nodes[to];
    shape("line", { class: "link", x1, y1, x2, y2 }, drawing);
  }
  const busy = shape("g", {}, drawing);
  const rings = {};
  for (const [name, [cx, cy]] of Object.entries(data.nodes)) {
    const isHost = name[0] === "h";
    const kind = name === data.source ? "host source" : isHost ? "host" : "switch";
    shape("circle", { class: kind, cx, cy, r: isHost ? 9.5 : 13 }, drawing);
    shape("text", { x: cx, y: cy }, drawing).textContent = name;
    if (isHost && name !== data.source)
      rings[name] = shape("circle", { class: "ring", cx, cy, r: 9.5, pathLength: 1, transform: `rotate(-90 ${cx} ${cy})` }, drawing);
  }
  const packets = shape("g", {}, drawing);

  function show() {
    const end = scheme.end;
    time = Math.max(0, Math.min(time, end));
    busy.replaceChildren();
    packets.replaceChildren();
    const got = {};
    const now = [];
    for (const hop of scheme.hops) {
      const [packet, from, to, start] = hop;
      if (start + 1 <= time && to in rings) got[to] = (got[to] || 0) + 1;
      if (start < time && time < start + 1 || (start === time && time < end)) {
        const share = time - start, a = data.nodes[from], b = data.nodes[to];
        shape("line", { class: "busy", x1: a[0], y1: a[1], x2: b[0], y2: b[1] }, busy);
        const x = a[0] + (b[0] - a[0]) * share, y = a[1] + (b[1] - a[1]) * share;
        shape("circle", { class: "packet", cx: x, cy: y, r: 5.5, fill: COLOURS[packet % COLOURS.length] }, packets);
        shape("text", { x, y }, packets).textContent = packet + 1;
        now.push(`${packet + 1}: ${from}→${to}`);
      }
    }
    for (const [name, ring] of Object.entries(rings))
      ring.setAttribute("stroke-dasharray", `${Math.min(1, (got[name] || 0) / data.packets)} 1`);
    const whole = Object.keys(rings).filter((name) => got[name] === data.packets).length;
    at.value = time;
    at.max = end;
    play.textContent = playing ? "Pause" : "Play";
    play.setAttribute("aria-pressed", playing);
    const text = `Time ${Math.floor(time)} of ${end}. ${whole} of ${Object.keys(rings).length} members have the whole message. `;
    said.textContent = text + (now.length ? `On the links: ${now.join(", ")}.` : time >= end ? "Done." : "");
    // Read out in rest only, not sixty times a second.
    said.setAttribute("aria-live", playing ? "off" : "polite");
  }
  function frame(now) {
    if (!playing) return;
    time += ((now - before) / 1000) * UNITS_PER_S;
    before = now;
    if (time >= scheme.end) playing = false;
    show();
    requestAnimationFrame(frame);
  }
  function start(on) {
    playing = on;
    if (on && time >= scheme.end) time = 0;
    before = performance.now();
    show();
    if (on) requestAnimationFrame(frame);
  }
  function step(by) {
    playing = false;
    time = (by > 0 ? Math.floor(time) : Math.ceil(time)) + by;
    show();
  }
  play.onclick = () => start(!playing);
  found(".step").onclick = () => step(1);
  found(".back").onclick = () => step(-1);
  found(".restart").onclick = () => { playing = false; time = 0; show(); };
  at.oninput = () => { playing = false; time = Number(at.value); show(); };
  const choices = found("fieldset");
  data.schemes.forEach((one, index) => {
    const label = document.createElement("label"), radio = document.createElement("input");
    Object.assign(radio, { type: "radio", name: "travel-scheme", value: one.name, checked: index === 0 });
    radio.onchange = () => { scheme = one; time = 0; show(); };
    label.append(radio, ` ${one.name}`);
    choices.append(label);
  });
  // A link such as worms.html#travel=switch@4 shows one moment of one scheme.
  const asked = /^#travel=([\w-]+)@([\d.]+)$/.exec(decodeURIComponent(location.hash));
  if (asked) {
    scheme = data.schemes.find((one) => one.name === asked[1]) || scheme;
    choices.querySelector(`[value="${scheme.name}"]`).checked = true;
    time = Number(asked[2]);
  }
  box.hidden = false;
  show();
})();
