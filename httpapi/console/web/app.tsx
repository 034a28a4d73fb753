import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Board } from "./board";
import { Cycles } from "./cycles";
import { Dialog } from "./dialog";
import { Header } from "./header";
import { MapView } from "./mapview";
import { views, type ViewName } from "./model";
import { Numbers } from "./numbers";
import { knowsPast, type Page } from "./page";
import { Rail, Worst } from "./rail";
import { StoryView } from "./story";
import { Strip } from "./strip";
import { TimeBar } from "./timebar";
import { Timeline } from "./timeline";

// Each component takes the page, and nothing from another one.
export interface Props { p: Page }

// App arranges the parts of the page.
export function App({ p }: Props) {
  return <>
    <a class="skip" href="#panel" onClick={(e) => { e.preventDefault(); document.getElementById("panel")!.focus(); }}>Skip to the tables</a>
    <Header p={p} />
    <Strip p={p} />
    <Worst p={p} />
    <main>
      <MapView p={p} />
      <section id="side" aria-label="Tables">
        <Tabs p={p} />
        <Panel p={p} />
        <TimeBar p={p} />
      </section>
    </main>
    {p.model.verb && <Dialog key={p.model.verb} p={p} v={p.model.verb} />}
  </>;
}

function Tabs({ p }: Props) {
  return <nav id="tabs" aria-label="Views">
    {views.map((v) => <button key={v} type="button" aria-current={v === p.model.view ? "page" : undefined} disabled={p.model.past !== null && !knowsPast(v)}
      onClick={() => p.show(v)} onDragEnter={() => v === "Timeline" && p.show(v)}>{v}</button>)}
  </nav>;
}

const panels: Record<ViewName, (p: Page) => JSX.Element> = {
  Orders: (p) => <Board p={p} kind="order" caption="Open orders, those with the least time left first" />,
  Timeline: (p) => <Timeline p={p} />,
  Drones: (p) => <Board p={p} kind="drone" caption="Drones, those in trouble first" />,
  Missions: (p) => <Board p={p} kind="mission" caption="Missions, active ones first" />,
  Alerts: (p) => <Rail p={p} />,
  Cycles: (p) => <><Cycles p={p} /><Board p={p} kind="cycle" caption="Cycles, newest first" /></>,
  Numbers: (p) => <Numbers p={p} />,
  Story: (p) => <StoryView p={p} />,
};

function Panel({ p }: Props) {
  const panel = useRef<HTMLDivElement>(null), { view, frame } = p.model;
  useLayoutEffect(() => { panel.current!.scrollTop = 0; }, [view]);
  return <div id="panel" ref={panel} tabIndex={0} role="region" aria-label={view} inert={frame !== null}>
    <div key={view}>{panels[view](p)}</div>
  </div>;
}
