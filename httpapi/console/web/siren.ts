import { troubles } from "./alerts";
import type { Store } from "./store";

const again = 30e3; // ms

// Siren sounds when something becomes wrong that cannot wait, and again until somebody has
// acknowledged it. What another alert explains makes no sound of its own.
export class Siren {
  private known = new Set<string>();
  private at = 0; // of the last tone, by the server's clock
  private audio: AudioContext | null = null;

  // hear takes note of the alerts as they are.
  hear(s: Store, on: boolean): void {
    if (on && !this.audio) this.audio = new AudioContext();
    if (!on && this.audio) { void this.audio.close(); this.audio = null; }
    const ids = troubles(s).filter((t) => t.alert.urgent && !t.alert.acknowledged).map((t) => t.alert.id), news = ids.some((id) => !this.known.has(id));
    this.known = new Set(ids);
    if (!this.audio || !(news || (ids.length && s.now() - this.at > again))) return;
    this.at = s.now();
    void this.audio.resume(); // a browser silences a page that nobody has touched
    const tone = this.audio.createOscillator(), gain = this.audio.createGain();
    gain.gain.value = 0.1;
    tone.connect(gain).connect(this.audio.destination);
    tone.start();
    tone.stop(this.audio.currentTime + 0.4);
  }
}
