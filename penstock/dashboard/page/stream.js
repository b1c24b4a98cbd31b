// Follows the server. What arrives is put away in small portions between frames, so that however
// much it is, the page goes on answering.

import { Changes, apply, emptyState } from "/store.js";

const PORTION = 12; // milliseconds of work before the browser has its turn again
const SILENCE = 15000; // the server beats every five seconds

export class Stream {
  // `changed(state, changes)` is called once a frame at most; `linked(word)` when the link changes.
  constructor(changed, linked) {
    this.changed = changed;
    this.linked = linked;
    this.state = emptyState();
    this.coming = null;
    this.changes = new Changes();
    this.queue = [];
    this.skew = 0; // how far this machine's clock is ahead of the server's, in milliseconds
    this.due = false;
    this.open();
    setInterval(() => this.watch(), 2000);
  }

  open() {
    this.linked(this.coming === null && !this.state.head ? "connecting" : "reconnecting");
    this.heard = performance.now();
    this.source = new EventSource("/events");
    for (const kind of ["reset", "delta", "whole", "beat"]) {
      this.source.addEventListener(kind, (event) => this.take(kind, event.data));
    }
    this.source.onerror = () => this.linked("reconnecting");
  }

  // The browser asks again by itself, unless it was refused or nothing is said any more.
  watch() {
    const silent = performance.now() - this.heard > SILENCE;
    if (this.source.readyState === EventSource.CLOSED || silent) {
      this.source.close();
      this.queue = [];
      this.open();
    }
  }

  take(kind, data) {
    this.heard = performance.now();
    this.queue.push([kind, data]);
    this.schedule();
  }

  schedule() {
    if (this.due) return;
    this.due = true;
    // A page in the background gets no frames; it is kept up all the same.
    if (document.hidden) setTimeout(() => this.work(), 250);
    else requestAnimationFrame(() => this.work());
  }

  work() {
    this.due = false;
    const end = performance.now() + PORTION;
    let done = 0;
    while (done < this.queue.length && (done === 0 || performance.now() < end)) {
      const [kind, data] = this.queue[done];
      done += 1;
      this.put(kind, JSON.parse(data));
    }
    this.queue.splice(0, done);
    if (this.state.head) this.changed(this.state, this.changes);
    if (this.queue.length) this.schedule();
  }

  put(kind, body) {
    if (body.now) this.skew = Date.now() - Date.parse(body.now);
    if (kind === "reset") this.coming = emptyState();
    else if (kind === "delta") apply(this.coming ?? this.state, body, this.coming ? new Changes() : this.changes);
    else if (kind === "whole" && this.coming) {
      this.state = this.coming;
      this.coming = null;
      this.changes.clear();
      this.changes.all = true;
      this.linked("live");
    }
  }

  now() {
    return Date.now() - this.skew;
  }
}
