/** Balance, spend per day, and every entry that changed the balance. */
import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type Spend } from '../../protocol/console.js'
import { request } from '../api.js'
import { SelectField } from '../components/field.js'
import { ErrorNotice, Skeleton } from '../components/notice.js'
import { Card, Page } from '../components/page.js'
import { formatNumber } from '../format.js'
import { useResource } from '../resource.js'
import { useSession } from '../session.js'
import { Ledger } from './ledger.js'
import { SpendChart } from './spend-chart.js'

const SPANS = ['7', '30', '90'] as const
type Span = (typeof SPANS)[number]

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
            To add credits, run this on the machine of the service:{' '}
            <code>rushes admin credits add {account.name} 1000</code>
          </p>
        </Card>
        <SpendCard />
      </div>
      <Ledger query={query} />
    </Page>
  )
}

function SpendCard() {
  const [span, setSpan] = useState<Span>('30')
  const { data, error, reload } = useResource(
    (signal) => request<Spend>('GET', CONSOLE_PATHS.spend, { query: { days: span }, signal }),
    [span],
  )
  return (
    <Card
      title="Spend per day"
      actions={
        <SelectField
          label="Days"
          isLabelHidden
          value={span}
          onChange={setSpan}
          choices={SPANS.map((value) => ({ value, label: `Last ${value} days` }))}
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
