/** Spend per day as bars, with the same figures as a table. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Spend } from '../../protocol/console.js'
import { Table } from '../components/table.js'
import { formatCredits, formatDay, formatNumber, plural } from '../format.js'
import { barsOf, labelledDays, topOf } from './chart-scale.js'

type Day = Spend['days'][number]

const HEIGHT = 176
const MARGIN = { left: 44, right: 20, top: 10, bottom: 24 } as const
const MIN_LABEL_GAP = 74

export function SpendChart({ days }: { readonly days: readonly Day[] }) {
  const [box, width] = useWidth()
  const [pointed, setPointed] = useState<number>()
  const values = days.map(({ credits }) => credits)
  const top = topOf(values)
  const area = {
    left: MARGIN.left,
    top: MARGIN.top,
    width: Math.max(0, width - MARGIN.left - MARGIN.right),
    height: HEIGHT - MARGIN.top - MARGIN.bottom,
  }
  const bars = barsOf(values, top, area)
  const slot = days.length === 0 ? 0 : area.width / days.length
  const heightOf = (share: number) => area.top + area.height * (1 - share)
  const day = pointed === undefined ? undefined : days[pointed]
  return (
    <div class="chart" ref={box}>
      <p class="chart-readout" aria-hidden="true">
        {day === undefined ? totalOf(days) : `${dayName(day.day)}: ${creditsAndRuns(day)}`}
      </p>
      {width > 0 && (
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label={`Spend per day. ${totalOf(days)} The same figures are in the table below.`}
          onPointerMove={(event) => {
            const at = Math.floor((event.offsetX - area.left) / slot)
            setPointed(at >= 0 && at < days.length ? at : undefined)
          }}
          onPointerLeave={() => setPointed(undefined)}
        >
          {[0, 0.5, 1].map((share) => (
            <g key={share}>
              <line
                class="chart-line"
                x1={area.left}
                x2={width - MARGIN.right}
                y1={heightOf(share)}
                y2={heightOf(share)}
              />
              <text class="chart-label" x={area.left - 8} y={heightOf(share) + 4} text-anchor="end">
                {formatNumber(top * share)}
              </text>
            </g>
          ))}
          {bars.map(({ x, y, width: barWidth, height }, at) => (
            <rect
              key={days[at]?.day}
              class={at === pointed ? 'chart-bar chart-bar-pointed' : 'chart-bar'}
              x={x}
              y={y}
              width={barWidth}
              height={height}
              rx={Math.min(2.5, barWidth / 2)}
            />
          ))}
          {labelledDays(days.length, area.width, MIN_LABEL_GAP).map((at) => (
            <text
              key={at}
              class="chart-label"
              x={area.left + slot * (at + 0.5)}
              y={HEIGHT - 6}
              text-anchor="middle"
            >
              {shortDay(days[at]?.day ?? '')}
            </text>
          ))}
        </svg>
      )}
      <details class="chart-table">
        <summary>Show as a table</summary>
        <div class="chart-rows">
          <Table
            caption="Spend per day"
            rows={[...days].reverse()}
            keyOf={({ day: name }) => name}
            columns={[
              { name: 'Day (UTC)', render: (each) => dayName(each.day) },
              { name: 'Credits', align: 'right', render: (each) => formatNumber(each.credits) },
              { name: 'Runs', align: 'right', render: (each) => formatNumber(each.runs) },
            ]}
          />
        </div>
      </details>
    </div>
  )
}

const creditsAndRuns = ({ credits, runs }: Pick<Day, 'credits' | 'runs'>) =>
  `${formatCredits(credits)}, ${plural(runs, 'run')}`

function totalOf(days: readonly Day[]): string {
  const sum = (pick: (day: Day) => number) => days.reduce((total, day) => total + pick(day), 0)
  const total = { credits: sum(({ credits }) => credits), runs: sum(({ runs }) => runs) }
  return `${creditsAndRuns(total)} in ${plural(days.length, 'day')}.`
}

const dayName = (day: string) => formatDay(`${day}T00:00:00Z`, 'UTC')
const shortDay = (day: string) => dayName(day).replace(/, \d+$/, '')

/** The width of an element, measured again when it changes. */
function useWidth() {
  const ref = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const element = ref.current
    if (element === null) return
    const measure = () => setWidth(Math.floor(element.clientWidth))
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return [ref, width] as const
}
