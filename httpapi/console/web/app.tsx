import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { AcknowledgeAll, BatchBar, BatchDialog } from "./batch";
import { Board } from "./board";
import { Card } from "./card";
import { Cycles } from "./cycles";
import { Dialog } from "./dialog";
import { Handover } from "./handover";
import { Header } from "./header";
import { Incidents } from "./incidents";
import { MapView } from "./mapview";
import type { ViewName } from "./model";
import { Numbers } from "./numbers";
import { knowsPast, type Page } from "./page";
import { Palette } from "./palette";
import { Rail, Worst } from "./rail";
import { Saved } from "./saved";
import { Sheet } from "./sheet";
import { StoryView } from "./story";
import { Strip } from "./strip";
import { TimeBar } from "./timebar";
import { Timeline } from "./timeline";
import { WallNumbers, WallWorst } from "./wall";

// Each component takes the page, and nothing from another one.
export interface Props { p: Page }

// App arranges the parts of the page. The style sheet has them in three columns, in two, or as a
// map above a sheet. The map keeps its place among its siblings, so that it is drawn once.
export function App({ p }: Props) {
  const { wall, sheet, verb, batch, pane } = p.model;
  useLayoutEffect(() => { document.documentElement.toggleAttribute("data-wall", wall); }, [wall]);
  return <>
    {!wall && <a class="skip" href="#panel" onClick={(e) => { e.preventDefault(); document.getElementById("panel")!.focus(); }}>Skip to the tables</a>}
    <Header p={p} />
    {wall ? <WallNumbers p={p} /> : <Strip p={p} />}
    {!wall && <Worst p={p} />}
    <main data-sheet={sheet}>
      <MapView p={p} />
      {wall ? <WallWorst p={p} /> : <Aux p={p} />}
      {!wall && <section id="side" aria-label="Tables">
        <Tabs p={p} />
        <BatchBar p={p} />
        <Panel p={p} />
        <TimeBar p={p} />
      </section>}
    </main>
    {verb && <Dialog key={verb} p={p} v={verb} />}
    {batch && <BatchDialog key={batch} p={p} b={batch} />}
    {pane === "palette" && <Palette p={p} />}
    {pane === "saved" && <Saved p={p} />}
  </>;
}

// Aux is what is selected and, where there is room for a third column, the alerts.
function Aux({ p }: Props) {
  const wide = useMedia("(min-width: 1800px)");
  return <div id="aux">
    <Card p={p} />
    {wide && p.model.view !== "Alerts" && <section aria-label="Alerts"><h2>Alerts</h2><Rail p={p} /></section>}
  </div>;
}

// useMedia says whether the screen is such as a media query asks for.
function useMedia(query: string): boolean {
  const [is, set] = useState(matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query), hear = () => set(media.matches);
    media.addEventListener("change", hear);
    return () => media.removeEventListener("change", hear);
  }, [query]);
  return is;
}

function Tabs({ p }: Props) {
  return <nav id="tabs" aria-label="Views">
    <Sheet p={p} />
    {p.views.map((v) => <button key={v} type="button" aria-current={v === p.model.view ? "page" : undefined} disabled={p.model.past !== null && !knowsPast(v)}
      onClick={() => p.show(v)} onDragEnter={() => v === "Timeline" && p.show(v)}>{v}</button>)}
    <button type="button" aria-keyshortcuts="Control+K" title="Find or do anything by its name: Ctrl-K" onClick={() => p.model.set({ pane: "palette" })}>Go to</button>
    <button type="button" title="What the page shows, saved under a name" onClick={() => p.model.set({ pane: "saved" })}>Saved</button>
    <button type="button" id="towall" title="Large and without controls; Escape ends it" onClick={() => p.model.set({ wall: true })}>Wall</button>
  </nav>;
}

const panels: Record<ViewName, (p: Page) => JSX.Element> = {
  Orders: (p) => <Board p={p} kind="order" caption="Open orders, those with the least time left first" />,
  Timeline: (p) => <Timeline p={p} />,
  Drones: (p) => <Board p={p} kind="drone" caption="Drones, those in trouble first" />,
  Missions: (p) => <Board p={p} kind="mission" caption="Missions, active ones first" />,
  Alerts: (p) => <><AcknowledgeAll p={p} /><Rail p={p} /></>,
  Cycles: (p) => <><Cycles p={p} /><details class="technical"><summary>Technical detail</summary><Board p={p} kind="cycle" caption="Cycles, newest first" /></details></>,
  Numbers: (p) => <Numbers p={p} />,
  Story: (p) => <StoryView p={p} />,
  Handover: (p) => <Handover p={p} />,
  Incidents: (p) => <Incidents p={p} />,
};

function Panel({ p }: Props) {
  const panel = useRef<HTMLDivElement>(null), { view } = p.model;
  useLayoutEffect(() => { panel.current!.scrollTop = 0; }, [view]);
  return <div id="panel" ref={panel} tabIndex={0} role="region" aria-label={view}>
    <div key={view}>{panels[view](p)}</div>
  </div>;
}
