import { useEffect, useState } from 'preact/hooks'
import {
  type BalanceEntry,
  CONSOLE_PATHS,
  type EntriesPage,
  type EntriesQuery,
} from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { type ApiRequest, messageOf, nextReadNumber, request, setBalance } from '../api.js'
import { Button, LinkButton } from '../components/button.js'
import { SelectField, TextField } from '../components/field.js'
import { Badge, EmptyState, ErrorNotice, SkeletonLines, type Tone } from '../components/notice.js'
import { Card } from '../components/page.js'
import { type Column, LoadMore, Table } from '../components/table.js'
import { Time } from '../components/time.js'
import { showToast } from '../components/toast.js'
import { formatAmount } from '../format.js'
import { useAction, useResource } from '../resource.js'
import { linkTo, navigate } from '../routes.js'
import { useKeyChoices } from '../runs/runs-filters.js'

const TONES: Readonly<Record<BalanceEntry['kind'], Tone>> = {
  added: 'good',
  charge: 'neutral',
  refund: 'accent',
}

const COLUMNS: readonly Column<BalanceEntry>[] = [
  { name: 'Time', class: 'nowrap', render: ({ created_at }) => <Time at={created_at} /> },
  {
    name: 'Kind',
    render: ({ kind }) => <Badge tone={TONES[kind] ?? 'neutral'}>{ENTRY_KINDS[kind] ?? kind}</Badge>,
  },
  {
    name: 'Run',
    render: ({ run_id }) =>
      run_id === null ? (
        <span class="muted">–</span>
      ) : (
        <a class="mono wrap" href={linkTo('runs', { param: run_id })}>
          {run_id}
        </a>
      ),
  },
  {
    name: 'Key',
    render: ({ key, run_id }) => (
      <span class={key === null ? 'muted' : 'wrap'}>
        {key === null ? (run_id === null ? '–' : 'Console') : printable(key.name)}
      </span>
    ),
  },
  {
    name: 'Credits',
    align: 'right',
    render: ({ amount }) => (
      <span class={amount > 0 ? 'amount amount-in' : 'amount'}>{formatAmount(amount)}</span>
    ),
  },
]

export function Ledger({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const filter = readFilter(query)
  const sent = entriesQuery(filter)
  const sentText = JSON.stringify(sent)
  const resource = useResource(
    async (signal) => ({ ...(await readEntries({ query: sent, signal })), sentText }),
    [sentText],
  )
  const { error, isLoading, reload, set } = resource
  // Show the entries of the previous filter until the new ones are loaded, but not if loading fails.
  const data = isLoading || resource.data?.sentText === sentText ? resource.data : undefined
  const more = useAction(async () => {
    const before = data?.next
    if (before == null) return
    const page = await readEntries({ query: { ...sent, before } })
    // Append the page only to the list that it belongs to: the filter may have changed during the request.
    set((now) =>
      now.next === before && now.sentText === sentText
        ? { ...page, sentText, entries: [...now.entries, ...page.entries] }
        : now,
    )
  })
  // Not a plain download link, because a link cannot send the session header.
  const save = (text: string) => saveFile(text, 'credits.csv')
  const csv = useAction(() => request<string>('GET', CONSOLE_PATHS.csv, { query: sent, isText: true }), {
    onDone: save,
    onMissed: save,
  })
  useErrorToast(more.error)
  useErrorToast(csv.error)
  const isFiltered = Object.keys(sent).length > 0
  return (
    <Card
      isFlush
      title="Ledger"
      actions={
        <Button size="small" icon="download" isBusy={csv.isBusy} onClick={() => void csv.run()}>
          Download CSV
        </Button>
      }
    >
      {(isFiltered || data === undefined || data.entries.length > 0) && <Filters filter={filter} />}
      <ErrorNotice error={error} onRetry={reload} />
      {data === undefined ? (
        error === undefined && <SkeletonLines count={6} />
      ) : data.entries.length === 0 ? (
        data.next === null ? (
          <NoEntries isFiltered={isFiltered} />
        ) : (
          <p class="card-notice muted">No match in the newest entries. Load more to search older ones.</p>
        )
      ) : (
        <Table
          caption="Ledger"
          columns={COLUMNS}
          rows={data.entries}
          keyOf={(entry) => entry.sequence}
          isLoading={isLoading}
        />
      )}
      {data?.next != null && <LoadMore action={more} disabled={isLoading} />}
    </Card>
  )
}

function useErrorToast(error: unknown): void {
  useEffect(() => {
    if (error !== undefined) showToast(messageOf(error), 'bad')
  }, [error])
}

async function readEntries(options: ApiRequest): Promise<EntriesPage> {
  const read = nextReadNumber()
  const page = await request<EntriesPage>('GET', CONSOLE_PATHS.credits, options)
  setBalance(page.balance, read)
  return page
}

function saveFile(text: string, name: string): void {
  const href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }))
  Object.assign(document.createElement('a'), { href, download: name }).click()
  // Revoke the URL later, because some browsers start to read it after this task.
  setTimeout(() => URL.revokeObjectURL(href), 60_000)
}

function NoEntries({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState
        icon="filter"
        title="No entries match"
        action={<LinkButton href={linkTo('credits')}>Clear the filters</LinkButton>}
      >
        Choose another kind, key or time.
      </EmptyState>
    )
  return (
    <EmptyState
      icon="credits"
      title="No entries yet"
      action={
        <LinkButton kind="primary" href={linkTo('new')}>
          New run
        </LinkButton>
      }
    >
      Create a run, and its charge appears here.
    </EmptyState>
  )
}

function Filters({ filter }: { readonly filter: LedgerFilter }) {
  const keys = useKeyChoices(filter.key)
  const [today] = useState(() => new Date().toISOString().slice(0, 10))
  const change = (changes: Partial<LedgerFilter>) =>
    navigate(linkTo('credits', { query: { ...filter, ...changes } }), { replace: true })
  return (
    <div class="filters">
      <SelectField
        label="Kind"
        value={filter.kind}
        onChange={(kind) => change({ kind })}
        choices={[
          { value: '', label: 'All kinds' },
          ...Object.entries(ENTRY_KINDS).map(([value, label]) => ({ value, label })),
        ]}
      />
      <SelectField
        label="Key"
        value={filter.key}
        onChange={(key) => change({ key })}
        choices={[{ value: '', label: 'All keys' }, ...keys]}
      />
      <TextField
        label="From (UTC)"
        type="date"
        value={filter.from}
        max={filter.to === '' ? today : filter.to}
        onInput={(from) => change({ from })}
      />
      <TextField
        label="To (UTC)"
        type="date"
        value={filter.to}
        min={filter.from}
        max={today}
        onInput={(to) => change({ to })}
      />
    </div>
  )
}

const ENTRY_KINDS: Readonly<Record<BalanceEntry['kind'], string>> = {
  charge: 'Charge',
  refund: 'Refund',
  added: 'Added',
}

/** Filter, stored in the URL fragment and sent as the request's query. An empty field matches all entries. */
interface LedgerFilter {
  readonly kind: string
  readonly key: string
  readonly from: string
  readonly to: string
}

const isDay = (text: string): boolean => /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))

/** Reads the filter from the URL fragment. Ignores invalid fields. */
export function readFilter(query: Readonly<Record<string, string>>): LedgerFilter {
  const { kind = '', key = '', from = '', to = '' } = query
  return {
    kind: Object.hasOwn(ENTRY_KINDS, kind) ? kind : '',
    key: /^[1-9]\d{0,14}$/.test(key) ? key : '',
    from: isDay(from) ? from : '',
    to: isDay(to) ? to : '',
  }
}

/** Query with the filter fields that are set. */
export const entriesQuery = (filter: LedgerFilter): Omit<EntriesQuery, 'kind'> & { readonly kind?: string } =>
  Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))
