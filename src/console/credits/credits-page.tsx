/** Credits page: balance, spend per day, and all balance entries. */
import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type Spend } from '../../protocol/console.js'
import { request } from '../api.js'
import { SelectField } from '../components/field.js'
import { Loaded, Skeleton } from '../components/notice.js'
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
  const spend = useResource(
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
      <Loaded {...spend} placeholder={<Skeleton height="200px" />}>
        {(data) => <SpendChart days={data.days} />}
      </Loaded>
    </Card>
  )
}

type Day = Spend['days'][number]

/** A bar for each day, as high as its share of the largest one. */
function SpendChart({ days }: { readonly days: readonly Day[] }) {
  const highest = Math.max(0, ...days.map(({ credits }) => credits))
  const credits = days.reduce((sum, day) => sum + day.credits, 0)
  const runs = days.reduce((sum, day) => sum + day.runs, 0)
  const summary = `${creditsAndRuns(credits, runs)} in ${plural(days.length, 'day')}.`
  return (
    <div class="chart">
      <p class="chart-readout" aria-hidden="true">
        {summary} {highest > 0 && `The highest bar is ${formatCredits(highest)}.`}
      </p>
      <div
        class="chart-bars"
        role="img"
        aria-label={`Spend per day. ${summary} The same figures are in the table below.`}
      >
        {days.map((day) => (
          <span
            key={day.day}
            class="chart-day"
            title={`${dayName(day.day)}: ${creditsAndRuns(day.credits, day.runs)}`}
          >
            {day.credits > 0 && (
              <span class="chart-bar" style={{ height: `${(100 * day.credits) / highest}%` }} />
            )}
          </span>
        ))}
      </div>
      <p class="chart-ends" aria-hidden="true">
        <span>{shortDay(days[0])}</span>
        <span>{shortDay(days.at(-1))}</span>
      </p>
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

const creditsAndRuns = (credits: number, runs: number) => `${formatCredits(credits)}, ${plural(runs, 'run')}`

const dayName = (day: string) => formatDay(`${day}T00:00:00Z`, 'UTC')
const shortDay = (day: Day | undefined) => dayName(day?.day ?? '').replace(/, \d+$/, '')
