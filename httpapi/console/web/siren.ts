import type { Store } from "./store";
import { urgent } from "./tables";

// Siren sounds once for each CRITICAL alert that nobody has acknowledged.
export class Siren {
  private known = new Set<string>();
  private audio: AudioContext | null = null;

  // hear takes note of the alerts as they are.
  hear(s: Store, on: boolean): void {
    if (on && !this.audio) this.audio = new AudioContext();
    if (!on && this.audio) { void this.audio.close(); this.audio = null; }
    const ids = [...s.all.alert.values()].filter((a) => urgent(a) && !a.acknowledged).map((a) => a.id), news = ids.some((id) => !this.known.has(id));
    this.known = new Set(ids);
    if (!news || !this.audio) return;
    const tone = this.audio.createOscillator(), gain = this.audio.createGain();
    gain.gain.value = 0.1;
    tone.connect(gain).connect(this.audio.destination);
    tone.start();
    tone.stop(this.audio.currentTime + 0.4);
  }
}
