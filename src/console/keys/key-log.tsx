/** What users and administrators did with the keys of the account, for its owners. */
import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type KeyLog } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { type ApiRequest, request } from '../api.js'
import { Button } from '../components/button.js'
import { Loaded } from '../components/notice.js'
import { Card } from '../components/page.js'
import { type Column, LoadMore, Table } from '../components/table.js'
import { Time } from '../components/time.js'
import { capitalized } from '../format.js'
import { useAction, useResource } from '../resource.js'
import { useStore } from '../store.js'
import { keysStore } from './key-store.js'

type Entry = KeyLog['entries'][number]

const COLUMNS: readonly Column<Entry>[] = [
  { name: 'Time', class: 'nowrap', render: ({ created_at }) => <Time at={created_at} /> },
  {
    name: 'Key',
    render: ({ key }) => (
      <span class="wrap">
        {printable(key.name)} {key.prefix !== null && <span class="mono muted">{key.prefix}…</span>}
      </span>
    ),
  },
  {
    name: 'Change',
    render: ({ action, fields }) =>
      [capitalized(action), fields.join(', ').replaceAll('_', ' ')].filter(Boolean).join(' '),
  },
  { name: 'By', render: ({ by }) => <span class="wrap">{by === 'admin' ? 'Administrator' : by}</span> },
]

const readLog = (before?: string, options: Pick<ApiRequest, 'signal'> = {}) =>
  request<KeyLog>('GET', CONSOLE_PATHS.keyLog, { query: { before }, ...options })

export function KeyLogCard() {
  const [isShown, setShown] = useState(false)
  return (
    <Card
      isFlush
      title="Log"
      about="Who created, changed and archived keys."
      actions={
        <Button size="small" onClick={() => setShown(!isShown)}>
          {isShown ? 'Hide log' : 'Show log'}
        </Button>
      }
    >
      {isShown && <Log />}
    </Card>
  )
}

function Log() {
  // Each change of a key is a new entry.
  const keys = useStore(keysStore)?.keys
  const log = useResource((signal) => readLog(undefined, { signal }), [keys])
  const { data, set } = log
  const more = useAction(async () => {
    const before = data?.next
    if (before == null) return
    const page = await readLog(before)
    set((now) => (now.next === before ? { ...page, entries: [...now.entries, ...page.entries] } : now))
  })
  return (
    <>
      <Loaded {...log} error={log.error ?? more.error}>
        {({ entries }) => <Table caption="Key log" columns={COLUMNS} rows={entries} keyOf={({ id }) => id} />}
      </Loaded>
      {data?.next != null && <LoadMore action={more} disabled={log.isLoading} />}
    </>
  )
}
