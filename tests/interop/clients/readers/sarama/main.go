// Reads partition 0 of a topic from its beginning with sarama: sarama BOOTSTRAP TOPIC. Prints the offset of each record.
package main

import (
	"fmt"
	"os"

	"github.com/IBM/sarama"
)

func main() {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	consumer, err := sarama.NewConsumer([]string{os.Args[1]}, config)
	if err != nil {
		panic(err)
	}
	partition, err := consumer.ConsumePartition(os.Args[2], 0, sarama.OffsetOldest)
	if err != nil {
		panic(err)
	}
	for message := range partition.Messages() {
		fmt.Println(message.Offset)
	}
}
