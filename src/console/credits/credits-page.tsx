/** Credits page: balance, spend per day, and all balance entries. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { CONSOLE_PATHS, type Spend } from '../../protocol/console.js'
import { request } from '../api.js'
import { SelectField } from '../components/field.js'
import { ErrorNotice, Skeleton } from '../components/notice.js'
import { Card, Page } from '../components/page.js'
import { Table } from '../components/table.js'
import { formatCredits, formatDay, formatNumber, plural } from '../format.js'
import { useResource } from '../resource.js'
import { useSession } from '../session.js'
import { Ledger } from './ledger.js'

const SPEND_DAYS = ['7', '30', '90'] as const
type SpendDays = (typeof SPEND_DAYS)[number]

export function CreditsPage({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { account } = useSession()
  return (
    <Page
      title="Credits"
      about="Runs are charged when they are accepted. A failed run gives its credits back."
    >
      <div class="credits-top">
        <Card>
          <h2>Balance</h2>
          <p class="credits-balance">
            {formatNumber(account.balance)} <span>credits</span>
          </p>
          <p class="hint">
            To add credits, run this on the machine of the service, with its <code>--data</code> or{' '}
            <code>--database</code> if it has one: <code>rushes admin credits add {account.name} 1000</code>
          </p>
        </Card>
        <SpendCard />
      </div>
      <Ledger query={query} />
    </Page>
  )
}

function SpendCard() {
  const [days, setDays] = useState<SpendDays>('30')
  const { data, error, reload } = useResource(
    (signal) => request<Spend>('GET', CONSOLE_PATHS.spend, { query: { days }, signal }),
    [days],
  )
  return (
    <Card
      title="Spend per day"
      actions={
        <SelectField
          label="Days"
          isLabelHidden
          value={days}
          onChange={setDays}
          choices={SPEND_DAYS.map((value) => ({ value, label: `Last ${value} days` }))}
        />
      }
    >
      {error !== undefined && <ErrorNotice error={error} onRetry={reload} />}
      {data !== undefined ? (
        <SpendChart days={data.days} />
      ) : (
        error === undefined && <Skeleton height="200px" />
      )}
    </Card>
  )
}

type Day = Spend['days'][number]

const HEIGHT = 176
const MARGIN = { left: 44, right: 20, top: 10, bottom: 24 } as const
const MIN_LABEL_GAP = 74

function SpendChart({ days }: { readonly days: readonly Day[] }) {
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

/** Measures the width of an element. Updates when the width changes. */
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

/** Round values for the top of the axis. From 4, half of each value is an integer, for the label in the middle. */
const AXIS_STEPS = [1, 2, 4, 10] as const

/** Top of the axis: the smallest of 4, 10, 20, 40, 100, … that is not below the highest value. */
export function topOf(values: readonly number[]): number {
  const highest = Math.max(4, ...values)
  const power = 10 ** Math.floor(Math.log10(highest))
  return (AXIS_STEPS.find((step) => step * power >= highest) ?? 10) * power
}

interface Bar {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

interface Area {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** Returns one bar per value. A bar for a value above zero is at least 2 px high, so that it is visible. */
export function barsOf(values: readonly number[], top: number, area: Area): readonly Bar[] {
  const slot = values.length === 0 ? 0 : area.width / values.length
  const width = Math.max(1, Math.min(28, slot * 0.7))
  return values.map((value, at) => {
    const height = value <= 0 ? 0 : Math.max(2, (value / top) * area.height)
    return {
      x: area.left + slot * at + (slot - width) / 2,
      y: area.top + area.height - height,
      width,
      height,
    }
  })
}

/** Indexes of the days with a label: the last day, and earlier days at least `minGap` pixels apart. */
export function labelledDays(count: number, width: number, minGap: number): readonly number[] {
  if (count === 0 || width <= 0) return []
  const step = Math.max(1, Math.ceil((minGap * count) / width))
  return Array.from({ length: Math.ceil(count / step) }, (_, at) => count - 1 - at * step).reverse()
}
