import { useEffect, useRef, useState } from 'preact/hooks'
import type { RunSummary } from '../../protocol/console.js'
import { isModelName, KINDS, type Kind } from '../../protocol/models.js'
import { LOCAL_STATUSES, type LocalStatus } from '../../protocol/run-state.js'
import { printable } from '../../protocol/text.js'
import { isKind } from '../../protocol/validate.js'
import { Button } from '../components/button.js'
import { type Choice, SelectField } from '../components/field.js'
import { Icon } from '../components/icon.js'
import { capitalized } from '../format.js'
import { readKeyChoices } from '../keys/key-store.js'
import { modelChoices, useModels } from '../model-documents.js'
import { useResource } from '../resource.js'

export interface Filters {
  readonly status?: LocalStatus
  readonly kind?: Kind
  readonly model?: string
  /** Id of a key, or `console` for runs created in the console. */
  readonly key?: string
  readonly search?: string
}

/** Reads the filters from the URL fragment. Ignores invalid values. */
export function filtersOf(query: Readonly<Record<string, string>>): Filters {
  const { status, kind, model, key, search } = query
  const knownStatus = LOCAL_STATUSES.find((each) => each === status)
  const knownKind = KINDS.find((each) => each === kind)
  return {
    ...(knownStatus !== undefined && { status: knownStatus }),
    ...(knownKind !== undefined && { kind: knownKind }),
    ...(model !== undefined && isModelName(model) && { model }),
    ...(key !== undefined && /^(console|\d{1,15})$/.test(key) && { key }),
    ...(search !== undefined && search.trim() !== '' && { search }),
  }
}

export const isFiltered = (filters: Filters): boolean => Object.keys(filters).length > 0

export const isSameFilter = (one: Filters, other: Filters): boolean =>
  one.status === other.status &&
  one.kind === other.kind &&
  one.model === other.model &&
  one.key === other.key &&
  one.search === other.search

/** Returns true if a listed run still matches. Checks only the status, since no other filtered field can change. */
export const stillMatches = ({ status }: Filters, run: RunSummary): boolean =>
  status === undefined || status === run.status

export interface RunsFiltersProps {
  readonly filters: Filters
  /** `isTyping` is true for the search text, which must not add history entries. */
  readonly onChange: (filters: Filters, isTyping?: boolean) => void
}

const STATUSES: readonly Choice[] = [
  { value: '', label: 'Any status' },
  ...LOCAL_STATUSES.map((status) => ({ value: status, label: capitalized(status) })),
]

export function RunsFilters({ filters, onChange }: RunsFiltersProps) {
  const keys = useKeyChoices(filters.key)
  const models = useModelChoices(filters.model)
  const set = (changed: { readonly [Name in keyof Filters]: string }, isTyping = false) =>
    onChange(filtersOf({ ...filters, ...changed }), isTyping)
  return (
    // biome-ignore lint/a11y/useSemanticElements: some screen readers do not support the search element
    <div class="runs-filters" role="search" aria-label="Filter runs">
      <SearchField value={filters.search ?? ''} onSearch={(text) => set({ search: text }, true)} />
      <SelectField
        {...filter('Status', filters.status)}
        choices={STATUSES}
        onChange={(value) => set({ status: value })}
      />
      <SelectField
        {...filter('Model', filters.model ?? filters.kind)}
        choices={models}
        onChange={(value) => set(isKind(value) ? { kind: value, model: '' } : { kind: '', model: value })}
      />
      <SelectField
        {...filter('Key', filters.key)}
        choices={[{ value: '', label: 'Any key' }, { value: 'console', label: 'Console' }, ...keys]}
        onChange={(value) => set({ key: value })}
      />
      {isFiltered(filters) && (
        <Button kind="ghost" icon="close" class="runs-clear" onClick={() => onChange({})}>
          Clear
        </Button>
      )}
    </div>
  )
}

const filter = (label: string, value = '') => ({
  ...{ label, value, isLabelHidden: true },
  class: value === '' ? 'filter-select' : 'filter-select is-set',
})

/** Choices for the model filter. Always contains the selected model, which may have only earlier runs. */
function useModelChoices(selected = ''): readonly Choice[] {
  const choices = [
    { value: '', label: 'Any model' },
    ...KINDS.toReversed().map((kind) => ({ value: kind, label: `All ${kind} models` })),
    ...modelChoices(useModels().data ?? []),
  ]
  const isListed = choices.some(({ value }) => value === selected)
  return isListed ? choices : [...choices, { value: selected, label: printable(selected) }]
}

/** Choices for the key filter. Always contains the selected key, even before the keys are loaded. */
export function useKeyChoices(selected = ''): readonly Choice[] {
  const { data = [] } = useResource(readKeyChoices, [])
  const choices = data.map(({ id, name }) => ({ value: String(id), label: printable(name) }))
  const isListed = ['', 'console', ...choices.map(({ value }) => value)].includes(selected)
  return isListed ? choices : [...choices, { value: selected, label: `Key ${selected}` }]
}

const SEARCH_PAUSE_MS = 250

interface SearchFieldProps {
  readonly value: string
  readonly onSearch: (text: string) => void
}

/** Searches after a pause in typing, or immediately on Enter. */
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
    // The filter was changed outside this field: by the back button or by Clear.
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
