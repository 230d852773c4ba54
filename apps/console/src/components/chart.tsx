// A small live chart over time. uPlot draws on a canvas and sets styles through the DOM, as the Content-Security-Policy requires.
import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { coloursChanged } from '../shell/theme.ts';

export interface Line {
  readonly label: string;
  /** The name of a colour of the stylesheet. */
  readonly colour: string;
  readonly values: readonly (number | null)[];
  readonly filled?: boolean;
}

interface ChartProps {
  /** Unix seconds. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** A sentence for people who do not see the chart. */
  readonly summary: string;
  readonly height: number;
}

const AXIS_PX = 46;

function optionsOf(lines: readonly Line[], format: ChartProps['format'], width: number, height: number): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  // The canvas needs plain colours, and `light-dark()` is not one. A probe resolves it.
  const probe = document.createElement('span');
  document.body.append(probe);
  const resolved = (name: string): string => {
    probe.style.color = colour(name);
    return getComputedStyle(probe).color;
  };
  const axis = { stroke: resolved('text-quiet'), ticks: { show: false }, font: '11px system-ui' };
  const options: uPlot.Options = {
    width,
    height,
    legend: { show: false },
    cursor: { show: false },
    padding: [6, 6, 0, 0],
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, space: 60, size: 20 },
      {
        ...axis,
        grid: { stroke: resolved('line'), width: 1 },
        size: AXIS_PX,
        space: 24,
        values: (_, ticks) => ticks.map((tick) => format(tick)),
      },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.label,
        stroke: resolved(line.colour),
        width: 1.5,
        // A minute without neighbours is no line, so latencies have points.
        points: { show: !line.filled, size: 4 },
        spanGaps: false,
        ...(line.filled && { fill: resolved(`${line.colour}-faint`) }),
      })),
    ],
  };
  probe.remove();
  return options;
}

export function Chart({ times, lines, format, summary, height }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const data = [times, ...lines.map(({ values }) => values)] as unknown as uPlot.AlignedData;
  const colours = coloursChanged.value;
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const made = new uPlot(optionsOf(lines, format, element.clientWidth, height), data, element);
    plot.current = made;
    const sizes = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      made.destroy();
    };
  }, [colours, height]);
  useEffect(() => plot.current?.setData(data));
  return (
    <figure class="chart">
      <div ref={place} role="img" aria-label={summary} />
      <figcaption aria-hidden="true">
        {lines.map(({ label, colour }) => (
          <span key={label} data-colour={colour}>
            {label}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
