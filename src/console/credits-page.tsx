/** Credits: the balance, what was spent per day, and the ledger. */
import { amount, credits, linkTo, number, plural } from './format.js'
import { type Assets, Page } from './layout.js'
import { Icon, type KeyChoice, Select, Table, Time } from './parts.js'

/** The fields of the URL. */
export interface CreditsQuery {
  readonly kind: string | undefined
  readonly key: string | undefined
}

export interface ShownEntry {
  readonly sequence: number
  readonly kind: 'added' | 'charge' | 'refund'
  /** Negative for a charge, and for credits that were removed. */
  readonly amount: number
  readonly runId: string | undefined
  readonly key: KeyChoice | undefined
  readonly createdAtMs: number
}

export interface SpentDay {
  readonly day: string
  readonly credits: number
  readonly runs: number
}

export interface CreditsView {
  readonly assets: Assets
  readonly balance: number
  readonly account: string
  readonly query: CreditsQuery
  readonly entries: readonly ShownEntry[]
  /** Where the older entries begin. */
  readonly next: number | undefined
  readonly days: readonly SpentDay[]
  readonly keys: readonly KeyChoice[]
}

const KINDS = { added: 'Added', charge: 'Charge', refund: 'Refund' } as const
const TONES = { added: 'succeeded', charge: 'canceled', refund: 'processing' } as const

export const CreditsPage = (props: CreditsView) => (
  <Page
    assets={props.assets}
    path="/credits"
    title="Credits"
    about="Runs are charged when they are accepted. A run that fails gives its credits back."
  >
    <div class="columns reversed">
      <section class="card details">
        <h2>Balance</h2>
        <p class="large">
          {number(props.balance)} <small>credits</small>
        </p>
        <p class="about">
          On the machine of the service, <code>rushes admin credits add {props.account} 1000</code> adds
          credits.
        </p>
      </section>
      <Spend {...props} />
    </div>
    <Ledger {...props} />
  </Page>
)

function Spend({ days }: CreditsView) {
  const top = Math.max(1, ...days.map((day) => day.credits))
  const spent = days.reduce((sum, day) => sum + day.credits, 0)
  const runs = days.reduce((sum, day) => sum + day.runs, 0)
  const summary = `${credits(spent)} for ${plural(runs, 'run')} in ${days.length} days.`
  return (
    <section class="card details">
      <h2>Spent per day</h2>
      <div class="chart">
        <small>{`The highest bar is ${credits(top)}.`}</small>
        <svg
          class="bars"
          viewBox={`0 0 ${days.length} 100`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Spent per day. ${summary}`}
        >
          {days.map((day, at) => {
            const height = Math.max(0, (100 * day.credits) / top)
            return (
              <rect key={day.day} x={at + 0.12} width="0.76" y={100 - height} height={height}>
                <title>{`${day.day}: ${credits(day.credits)}, ${plural(day.runs, 'run')}`}</title>
              </rect>
            )
          })}
        </svg>
        <span class="ends" aria-hidden="true">
          <span>{days[0]?.day}</span>
          <span>{days.at(-1)?.day}</span>
        </span>
      </div>
      <p>{summary}</p>
    </section>
  )
}

function Ledger({ query, entries, next, keys }: CreditsView) {
  return (
    <section class="stack" aria-label="Ledger">
      <div class="row spread">
        <h2>Ledger</h2>
        <a class="button small" href={linkTo('/credits.csv', { ...query })}>
          <Icon name="download" size={14} /> Download CSV
        </a>
      </div>
      <form class="filters" action="/credits">
        <Select
          name="kind"
          label="Kind"
          chosen={query.kind}
          choices={[['', 'Any kind'], ...Object.entries(KINDS)]}
        />
        <Select
          name="key"
          label="API key"
          chosen={query.key}
          choices={[['', 'Any key'], ...keys.map(({ id, name }) => [String(id), name] as const)]}
        />
        <button type="submit" class="button">
          Show
        </button>
      </form>
      {entries.length === 0 ? (
        <div class="card empty">
          <p>{next === undefined ? 'No entries match.' : 'No match in the newest entries.'}</p>
        </div>
      ) : (
        <Table label="Entries" head={['Time', 'Kind', 'Run', 'Key', 'Credits']} right={['Credits']}>
          {entries.map((entry) => (
            <tr key={entry.sequence}>
              <td>
                <Time ms={entry.createdAtMs} />
              </td>
              <td>
                <span class={`badge ${TONES[entry.kind]}`}>{KINDS[entry.kind]}</span>
              </td>
              <td>{entry.runId && <a href={`/runs/${entry.runId}`}>{entry.runId}</a>}</td>
              <td class="key">{entry.key?.name ?? (entry.runId && 'Console')}</td>
              <td class={entry.amount > 0 ? 'right good' : 'right'} data-name="Credits">
                {amount(entry.amount)}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {next !== undefined && (
        <a class="button" href={linkTo('/credits', { ...query, before: next })}>
          Older entries
        </a>
      )}
    </section>
  )
}
