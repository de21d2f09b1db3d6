import type { ComponentChildren } from 'preact'
import type { Action } from '../resource.js'
import { Button } from './button.js'

export interface Column<Row> {
  readonly name: string
  readonly render: (row: Row) => ComponentChildren
  /** Use `right` for numbers. */
  readonly align?: 'left' | 'right'
  /** True to show the title only to screen readers, as for a column of buttons. */
  readonly isTitleHidden?: boolean
  readonly class?: string
}

export interface TableProps<Row> {
  /** Describes the table for screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string | number
  readonly class?: string
  /** Dims the rows while new rows are loading. */
  readonly isLoading?: boolean
}

/**
 * Table whose first column is the heading of its row. On a narrow screen, each row becomes a card that shows the column
 * titles before the values.
 */
export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
  isLoading = false,
  class: more,
}: TableProps<Row>) {
  const classOf = ({ align = 'left', class: more }: Column<Row>) =>
    [align === 'right' && 'right', more].filter(Boolean).join(' ') || undefined
  return (
    <table class={more === undefined ? 'table' : `table ${more}`} aria-busy={isLoading || undefined}>
      <caption class="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.name} scope="col" class={classOf(column)}>
              {column.isTitleHidden ? <span class="visually-hidden">{column.name}</span> : column.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column, at) => {
              const shared = {
                class: classOf(column),
                'data-name': column.isTitleHidden ? undefined : column.name,
              }
              return at === 0 ? (
                <th key={column.name} scope="row" {...shared}>
                  {column.render(row)}
                </th>
              ) : (
                <td key={column.name} {...shared}>
                  {column.render(row)}
                </td>
              )
            })}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

export interface LoadMoreProps {
  readonly action: Action<[]>
  readonly disabled: boolean
}

/** Button below a table that loads the next page. */
export function LoadMore({ action, disabled }: LoadMoreProps) {
  return (
    <div class="card-more">
      <Button isBusy={action.isBusy} disabled={disabled} onClick={() => void action.run()}>
        Load more
      </Button>
    </div>
  )
}
