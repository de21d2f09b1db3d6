import { useEffect, useRef, useState } from 'preact/hooks'
import { KINDS } from '../../protocol/models.js'
import { LOCAL_STATUSES } from '../../protocol/run-state.js'
import { printable } from '../../protocol/text.js'
import { Button } from '../components/button.js'
import { type Choice, Select } from '../components/field.js'
import { Icon } from '../components/icon.js'
import { readKeyChoices } from '../keys/key-requests.js'
import { useResource } from '../resource.js'
import { useSession } from '../session.js'
import { type Filters, isFiltered } from './filters.js'

export interface RunsFiltersProps {
  readonly filters: Filters
  /** `isTyping`: the search, which adds nothing to the history. */
  readonly onChange: (filters: Filters, isTyping?: boolean) => void
}

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

const STATUSES: readonly Choice[] = [
  { value: '', label: 'Any status' },
  ...LOCAL_STATUSES.map((status) => ({ value: status, label: capitalized(status) })),
]

export function RunsFilters({ filters, onChange }: RunsFiltersProps) {
  const { models } = useSession()
  const keys = useResource(readKeyChoices, [])
  const set = (name: keyof Filters, value: string, isTyping = false) => {
    const { [name]: _, ...others } = filters
    onChange(value === '' ? others : { ...others, [name]: value }, isTyping)
  }
  const kinds = KINDS.map((kind) => ({
    value: kind,
    label: `${capitalized(kind)}: ${printable(models[kind])}`,
  }))
  const known = (keys.data ?? []).map(({ id, name }) => ({ value: String(id), label: printable(name) }))
  return (
    // biome-ignore lint/a11y/useSemanticElements: the search element is not known to all readers
    <div class="runs-filters" role="search" aria-label="Filter runs">
      <SearchField value={filters.search ?? ''} onSearch={(text) => set('search', text, true)} />
      <FilterSelect
        label="Status"
        value={filters.status ?? ''}
        choices={STATUSES}
        onChange={(value) => set('status', value)}
      />
      <FilterSelect
        label="Model"
        value={filters.kind ?? ''}
        choices={[{ value: '', label: 'Any model' }, ...kinds]}
        onChange={(value) => set('kind', value)}
      />
      <FilterSelect
        label="Key"
        value={filters.key ?? ''}
        choices={[
          { value: '', label: 'Any key' },
          { value: 'console', label: 'Created here' },
          ...withKey(known, filters.key),
        ]}
        onChange={(value) => set('key', value)}
      />
      {isFiltered(filters) && (
        <Button kind="ghost" icon="close" onClick={() => onChange({})}>
          Clear
        </Button>
      )}
    </div>
  )
}

/** The key of the filter is a choice before the keys have been read. */
export const withKey = (choices: readonly Choice[], key: string | undefined): readonly Choice[] =>
  key === undefined || key === 'console' || choices.some(({ value }) => value === key)
    ? choices
    : [...choices, { value: key, label: `Key ${key}` }]

interface FilterSelectProps {
  readonly label: string
  readonly value: string
  readonly choices: readonly Choice[]
  readonly onChange: (value: string) => void
}

function FilterSelect({ label, value, choices, onChange }: FilterSelectProps) {
  return (
    <Select
      attributes={{ 'aria-label': label }}
      class={value === '' ? 'filter-select' : 'filter-select is-set'}
      value={value}
      choices={choices}
      onChange={onChange}
    />
  )
}

const SEARCH_PAUSE_MS = 250

interface SearchFieldProps {
  readonly value: string
  readonly onSearch: (text: string) => void
}

/** Searches when typing pauses, and at once with Enter. */
function SearchField({ value, onSearch }: SearchFieldProps) {
  const [text, setText] = useState(value)
  const sent = useRef(value)
  const search = useRef(onSearch)
  search.current = onSearch
  const send = (next: string) => {
    if (next === sent.current) return
    sent.current = next
    search.current(next)
  }
  useEffect(() => {
    // The back button, or Clear.
    if (value === sent.current) return
    sent.current = value
    setText(value)
  }, [value])
  useEffect(() => {
    const timer = setTimeout(() => send(text.trim()), SEARCH_PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <span class="runs-search">
      <Icon name="search" />
      <input
        class="input"
        type="search"
        aria-label="Search in prompts"
        placeholder="Search in prompts"
        title="Searches the first 1,000 characters of a prompt"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') send(text.trim())
          if (event.key === 'Escape') setText('')
        }}
      />
    </span>
  )
}
