// The headers of a request or an answer, under a summary that opens the list.
interface HeaderListProps {
  readonly summary: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export function HeaderList({ summary, headers }: HeaderListProps) {
  return (
    <details>
      <summary>{summary}</summary>
      <dl class="headers">
        {headers.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
